import type { Visibility } from '../targets/target.types.js';

declare module '../../platform/queue/pub-sub.js' {
  interface Topics {
    /** Published when data that run endpoints or hosted programs cache changed; after a rename, for the old slug as well. */
    'servers.changed': ServerChange;
    'servers.deleted': ServerChange;
  }
}

export const releaseTypes = ['external_shttp', 'hosted_shttp', 'stdio'] as const;
export type ReleaseType = (typeof releaseTypes)[number];

export const bundleRuntimes = ['node', 'python', 'binary', 'bun'] as const;
export type BundleRuntime = (typeof bundleRuntimes)[number];

type Item = Record<string, unknown>;

export interface HostedFacts {
  isStateful: boolean;
  /** True if an auth adapter authorizes the users of the server. */
  hasAuthAdapter: boolean;
  /** The path of its MCP endpoint: `/` or `/mcp`. */
  mcpPath: string;
}

/** A warning about a string that instructs a model as in known attacks, or about a tool that clients reject or cannot check. */
export interface ServerWarning {
  /** Name of the tool; null for other parts, which the message names. */
  tool: string | null;
  message: string;
  /** True if clients reject the tool or cannot check its arguments or results, because of its schema. */
  isBroken?: true;
}

/** Facts of a server, from a scan or from its author. */
export interface ServerSnapshot {
  releaseId: string;
  type: ReleaseType;
  /** URL of the upstream of an external release. */
  upstreamUrl: string | null;
  /** Runtime of a bundle. */
  runtime: BundleRuntime | null;
  /** Hosted modules only; null or missing for others. */
  hosted?: HostedFacts | null;
  /** True if a card claims it and no scan confirmed it. Missing in old rows. */
  isClaimed?: boolean;
  /** True if the credentials of the scan were deleted; without them, the server might list less. */
  hadCredentials?: boolean;
  /** JSON Schema of the configuration values of callers; `{}` without any. */
  configSchema: Item;
  /** Paths of the values in the publisher's order, which `jsonb` does not keep. Missing in old rows. */
  configOrder?: string[];
  serverInfo: Item | null;
  /** Null if unknown. Unknown members of items are stored too. */
  tools: Item[] | null;
  resources: Item[] | null;
  resourceTemplates: Item[] | null;
  prompts: Item[] | null;
  /** Warnings of the scan; missing in old rows. */
  warnings?: ServerWarning[];
}

/** A server's tools, resources and prompts, and its `serverInfo`. */
export type ServerOffers = Pick<ServerSnapshot, 'serverInfo' | 'tools' | 'resources' | 'resourceTemplates' | 'prompts'>;

/** Restricts offers to these tools; null keeps everything. */
export function withinTools<T extends Pick<ServerOffers, 'tools' | 'resources' | 'resourceTemplates' | 'prompts'>>(
  offers: T,
  tools: readonly string[] | null,
): T {
  if (!tools) return offers;
  const grantedTools = offers.tools?.filter(({ name }) => tools.includes(String(name))) ?? null;
  return { ...offers, tools: grantedTools, resources: [], resourceTemplates: [], prompts: [] };
}

export interface ServerTarget {
  id: string;
  ownerId: string;
  namespace: string;
  visibility: Visibility;
}

export interface ServerUse {
  serverId: string;
  accountId: string;
}

/** Holds streams, sessions or calls of servers open in this process, for accounts. */
export interface ServerHolder {
  uses(): Iterable<ServerUse>;
  /** @param now cancels calls without a response */
  endUse(use: ServerUse, now: boolean): void;
}

/** Holders of servers: run endpoints, and connections to servers. */
export const serverHolders = {
  runs: Symbol('ServerHolder of runs'),
  connections: Symbol('ServerHolder of connections'),
};

/** A server's id, names and owner, as access decisions need them. */
export interface ServerRef extends ServerTarget {
  namespaceId: string;
  /** Name within the namespace; empty for a namespace-only server. */
  name: string;
  slug: string;
}

export interface RunnableServer extends ServerRef {
  /** True if the runtime logs store arguments and results. */
  logPayloads: boolean;
  /** The reason why the operator suspended the server or its namespace; null without a suspension. */
  suspended: string | null;
  /** Null without a successful release. */
  current: Pick<
    ServerSnapshot,
    'releaseId' | 'type' | 'upstreamUrl' | 'hosted' | 'configSchema' | 'configOrder'
  > | null;
}

export type ServerChange = Pick<ServerRef, 'id' | 'slug'>;

export interface QualifiedName {
  namespace: string;
  /** Name within the namespace; empty for a namespace-only server. */
  name: string;
}

/** Returns `namespace/name`, or `namespace` alone. */
export function formatQualifiedName({ namespace, name }: QualifiedName): string {
  return name === '' ? namespace : `${namespace}/${name}`;
}

/** Returns the parts of a decoded, canonical qualified name. */
export function parseQualifiedName(text: string): QualifiedName {
  const slash = text.indexOf('/');
  return slash < 0 ? { namespace: text, name: '' } : { namespace: text.slice(0, slash), name: text.slice(slash + 1) };
}
