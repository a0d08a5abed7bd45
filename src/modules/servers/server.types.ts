declare module '../../platform/queue/pub-sub.js' {
  interface Topics {
    /** Published when something changed that run endpoints or hosted programs cache; after a rename also with the old slug. */
    'servers.changed': ServerChange;
    /** Published when a server was deleted. */
    'servers.deleted': ServerChange;
  }
}

/** The kinds of releases, as the API names them. */
export type ReleaseType = 'external_shttp' | 'hosted_shttp' | 'stdio';

/** What runs the files of a bundle. */
export const bundleRuntimes = ['node', 'python', 'binary', 'bun'] as const;
export type BundleRuntime = (typeof bundleRuntimes)[number];

type Item = Record<string, unknown>;

/** How code that runs here wants to be run and called, as its module says. */
export interface HostedFacts {
  /** It keeps sessions, each with values of its own. */
  isStateful: boolean;
  /** It brings its own way of authorizing its callers. */
  hasAuthAdapter: boolean;
  /** Where it answers MCP: `/`, or `/mcp`. */
  mcpPath: string;
}

/** What is known of a server through one release: what the scan found, or what its author claimed. */
export interface ServerSnapshot {
  releaseId: string;
  type: ReleaseType;
  /** External releases only. */
  upstreamUrl: string | null;
  /** Bundles only. */
  runtime: BundleRuntime | null;
  /** Code that runs here; null, or missing in what was stored before there was any, for all others. */
  hosted?: HostedFacts | null;
  /** Nobody compared it with the server: its author or its card claims it. Missing in what was stored earlier. */
  isClaimed?: boolean;
  /** The server was looked at with credentials that were forgotten afterwards; without, it may show something else. */
  hadCredentials?: boolean;
  /** JSON Schema of what a caller configures; `{}` when there is nothing. */
  configSchema: Item;
  serverInfo: Item | null;
  /** Null: unknown, or the server has none of these at all. Members we do not know are kept. */
  tools: Item[] | null;
  resources: Item[] | null;
  resourceTemplates: Item[] | null;
  prompts: Item[] | null;
}

/** What a server offers, and how it introduces itself. */
export type ServerOffers = Pick<ServerSnapshot, 'serverInfo' | 'tools' | 'resources' | 'resourceTemplates' | 'prompts'>;

/** One server, as other modules name it. */
export interface ServerRef {
  id: string;
  namespaceId: string;
  namespace: string;
  /** Empty for a namespace-only server. */
  name: string;
  /** Last segment of its run endpoint. */
  slug: string;
}

/** What the run endpoint must know of a server. */
export interface RunnableServer extends ServerRef {
  /** Its owner wants arguments and results in the runtime logs. */
  logPayloads: boolean;
  /** Null without a successful release. */
  current: Pick<ServerSnapshot, 'releaseId' | 'type' | 'upstreamUrl' | 'hosted' | 'configSchema'> | null;
}

/** The data of both topics. */
export type ServerChange = Pick<ServerRef, 'id' | 'slug'>;
