import type { Visibility } from '../targets/target.types.js';

declare module '../../platform/queue/pub-sub.js' {
  interface Topics {
    /** Published when data changed that run endpoints or hosted programs cache; after a rename also with the old slug. */
    'servers.changed': ServerChange;
    /** Published when a server was deleted. */
    'servers.deleted': ServerChange;
  }
}

/** The kinds of releases, as the API names them. */
export const releaseTypes = ['external_shttp', 'hosted_shttp', 'stdio'] as const;
export type ReleaseType = (typeof releaseTypes)[number];

/** The runtimes of bundles. */
export const bundleRuntimes = ['node', 'python', 'binary', 'bun'] as const;
export type BundleRuntime = (typeof bundleRuntimes)[number];

type Item = Record<string, unknown>;

/** How a hosted module is run and called. */
export interface HostedFacts {
  /** True if its sessions have state. */
  isStateful: boolean;
  /** True if it exports an auth adapter, which authorizes its users. */
  hasAuthAdapter: boolean;
  /** The path of its MCP endpoint: `/` or `/mcp`. */
  mcpPath: string;
}

/** Text of a server that speaks to a model as known attacks do, or a tool that clients refuse or cannot check. */
export interface ServerWarning {
  /** Null for another part than a tool, which the message names. */
  tool: string | null;
  /** What was found where, in sentences. */
  message: string;
  /** Clients refuse the tool or cannot check its arguments or results, for its schema. */
  isBroken?: true;
}

/** The facts about a server from one release: scanned, or claimed by its author. */
export interface ServerSnapshot {
  releaseId: string;
  type: ReleaseType;
  /** External releases only. */
  upstreamUrl: string | null;
  /** Bundles only. */
  runtime: BundleRuntime | null;
  /** Hosted modules only; null or missing for others. */
  hosted?: HostedFacts | null;
  /** True if a card claims it and no scan confirmed it. Missing in old rows. */
  isClaimed?: boolean;
  /** True if the scan used credentials, which were deleted afterwards; without them the server may show less. */
  hadCredentials?: boolean;
  /** JSON Schema of the configuration values of callers; `{}` without any. */
  configSchema: Item;
  /** Paths of its values in the order of the publisher, which `jsonb` does not keep. Missing in old rows. */
  configOrder?: string[];
  serverInfo: Item | null;
  /** Null if unknown. Unknown members of items are stored too. */
  tools: Item[] | null;
  resources: Item[] | null;
  resourceTemplates: Item[] | null;
  prompts: Item[] | null;
  /** Missing in old rows. */
  warnings?: ServerWarning[];
}

/** A server's tools, resources and prompts, and its `serverInfo`. */
export type ServerOffers = Pick<ServerSnapshot, 'serverInfo' | 'tools' | 'resources' | 'resourceTemplates' | 'prompts'>;

/** Keeps only these tools of what a server offers; null: everything. */
export function withinTools<T extends Pick<ServerOffers, 'tools' | 'resources' | 'resourceTemplates' | 'prompts'>>(
  offers: T,
  tools: readonly string[] | null,
): T {
  if (!tools) return offers;
  const grantedTools = offers.tools?.filter(({ name }) => tools.includes(String(name))) ?? null;
  return { ...offers, tools: grantedTools, resources: [], resourceTemplates: [], prompts: [] };
}

/** A server as the target of the question of access. */
export interface ServerTarget {
  id: string;
  /** The account that owns its namespace. */
  ownerId: string;
  namespace: string;
  visibility: Visibility;
}

/** An account that has something open of a server. */
export interface ServerUse {
  serverId: string;
  accountId: string;
}

/** Holds something open of servers in this process, for accounts. */
export interface ServerHolder {
  /** Uses that are open now. */
  uses(): Iterable<ServerUse>;
  /** Ends all that the account holds of the server. @param now cuts calls that are not answered yet */
  endUse(use: ServerUse, now: boolean): void;
}

/** Tokens of the holders: run endpoints, and connections to servers. */
export const serverHolders = {
  runs: Symbol('ServerHolder of runs'),
  connections: Symbol('ServerHolder of connections'),
};

/** A reference to a server. */
export interface ServerRef extends ServerTarget {
  namespaceId: string;
  /** Empty for a namespace-only server. */
  name: string;
  /** Last segment of its run endpoint. */
  slug: string;
}

/** The data of a server that its run endpoint needs. */
export interface RunnableServer extends ServerRef {
  /** True if arguments and results go into the runtime logs. */
  logPayloads: boolean;
  /** Why the operator suspended it, or its namespace; null for one in use. */
  suspended: string | null;
  /** Null without a successful release. */
  current: Pick<
    ServerSnapshot,
    'releaseId' | 'type' | 'upstreamUrl' | 'hosted' | 'configSchema' | 'configOrder'
  > | null;
}

/** The payload of both topics. */
export type ServerChange = Pick<ServerRef, 'id' | 'slug'>;

/** The namespace and name of a server. */
export interface QualifiedName {
  namespace: string;
  /** Empty for a namespace-only server. */
  name: string;
}

/** `namespace/name`, or `namespace` alone. */
export function formatQualifiedName({ namespace, name }: QualifiedName): string {
  return name === '' ? namespace : `${namespace}/${name}`;
}

/** The parts of a decoded, canonical qualified name. */
export function parseQualifiedName(text: string): QualifiedName {
  const slash = text.indexOf('/');
  return slash < 0 ? { namespace: text, name: '' } : { namespace: text.slice(0, slash), name: text.slice(slash + 1) };
}
