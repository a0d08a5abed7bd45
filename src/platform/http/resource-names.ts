/** Name of a namespace, which fits a DNS label and a path segment. */
export const NAMESPACE_NAME = /^[a-z0-9][a-z0-9-]{1,37}[a-z0-9]$/;

/** Name of a server, as published clients let users type it. */
export const SERVER_NAME = /^[a-zA-Z0-9][a-zA-Z0-9_-]{2,38}$/;

const firstSegments = new Set(
  (
    'about account accounts admin api app apps assets audit auth billing blobs blog bundles callback catalog cli config ' +
    'connect connections consent console credentials dashboard debug deployments diagnostics docs domains download downloads ' +
    'events explore favicon.ico files health help home hooks host hosting icon icons internal invite jobs keys legal llms.txt ' +
    'login logout logs manifest mcp me members metrics namespaces new notifications oauth openapi openapi.json ' +
    'organizations orgs ping privacy profile public queue queues ready register registry releases robots.txt root run ' +
    'search secrets security server servers session sessions settings setup signin signup skills slipway static status ' +
    'subscriptions support swagger system teams terms token tokens tools triggers uplink upload user users v1 v2 v3 ' +
    'version webhooks well-known ws www'
  ).split(' '),
);

const subresources = new Set(
  (
    'releases deployments logs icon secrets domains download transfer experimental changes runtime repo metrics stats ' +
    'invocations tools resources prompts versions verified otlp'
  ).split(' '),
);

/**
 * First path segments that can never be a namespace, since `/{namespace}…` is the short form of
 * `/connect/{namespace}…`: those of served routes, and words that a later version might need.
 */
export const RESERVED_NAMESPACES: ReadonlySet<string> = firstSegments;

/**
 * Words that follow a server in a path, so they cannot be a server's name: `/servers/acme/logs` is the log of `acme`.
 * First segments of served routes, and words that a later version might need.
 */
export const SERVER_SUBRESOURCES: ReadonlySet<string> = subresources;

/** Reserves the first word of a path. Called at startup for every route, so that no module keeps a list. */
export function reservePath(path: string): void {
  const [, first = '', second = '', third = ''] = path.split('/');
  if (first !== '') firstSegments.add(first);
  if (first === 'servers' && second.startsWith(':') && /^[a-zA-Z]/.test(third)) subresources.add(third);
}

export function isNamespaceName(name: string): boolean {
  return NAMESPACE_NAME.test(name) && !RESERVED_NAMESPACES.has(name);
}
