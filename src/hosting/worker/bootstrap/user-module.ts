import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { Bindings, ExecutionContext } from './worker-bindings.js';

/** What a server of any SDK version has: the low-level `Server` as well as `McpServer`. */
export interface SdkServer {
  connect(transport: Transport): Promise<void>;
  close?(): Promise<void>;
}

/** What a stateful server keeps between calls. */
export interface Session {
  id: string;
  get(key: string): Promise<unknown>;
  set(key: string, value: unknown): Promise<void>;
  delete(key: string): Promise<void>;
}

export type MessageHandler = (message: unknown) => unknown;

/** What the factory is given. */
export interface ServerContext {
  config: unknown;
  env: Record<string, string>;
  accessToken?: string;
  session?: Session;
  onMessage?: (handler: MessageHandler) => void;
}

export type ServerFactory = (context: ServerContext) => SdkServer | Promise<SdkServer>;

export type FetchHandler = (request: Request, env: Bindings, context: ExecutionContext) => Response | Promise<Response>;

export interface AuthAdapter {
  getAuthorizationUrl(payload: unknown): Promise<unknown>;
  exchangeCode(payload: unknown): Promise<unknown>;
  refreshToken(payload: unknown): Promise<unknown>;
}

export type HttpHandler = (
  request: Request,
  context: {
    env: Record<string, string>;
    sessions?: { send(sessionId: string, message: unknown): Promise<unknown> };
  },
) => Response | Promise<Response>;

/** A zod object, of whichever version. */
export interface ConfigParser {
  safeParseAsync(value: unknown): Promise<ParseResult>;
}

export type ParseResult =
  | { success: true; data: unknown }
  | { success: false; error: { issues: { path: PropertyKey[]; message: string; expected?: unknown }[] } };

/** What a module may export (`ServerModule` of `@smithery/sdk` 4.3, or a plain worker). */
export interface UserModule {
  default?: unknown;
  stateful?: unknown;
  configSchema?: unknown;
  createAuthAdapter?: (context: { env: Record<string, string> }) => AuthAdapter | Promise<AuthAdapter>;
  handleHttp?: HttpHandler;
  /** A plain worker may bring its own class of sessions. */
  McpSession?: unknown;
}

/** The two kinds of module this service runs. */
export type ModuleForm = { kind: 'factory'; factory: ServerFactory } | { kind: 'worker'; fetch: FetchHandler };

const EXPECTED = 'The default export must be a function that returns an MCP server, or an object with a fetch handler';

/** @throws TypeError with a sentence for the author */
export function formOf(module: UserModule): ModuleForm {
  const made = module.default;
  if (made === undefined) throw new TypeError(`${EXPECTED}; the module has no default export.`);
  if (typeof made === 'function') {
    if (/^class\b/.test(Function.prototype.toString.call(made))) throw new TypeError(`${EXPECTED}; it is a class.`);
    return { kind: 'factory', factory: made as ServerFactory };
  }
  const { fetch: handler, connect } = (typeof made === 'object' && made !== null ? made : {}) as Record<
    string,
    unknown
  >;
  if (typeof handler === 'function') {
    return {
      kind: 'worker',
      fetch: (request, env, context) => (handler as FetchHandler).call(made, request, env, context),
    };
  }
  if (typeof connect === 'function') {
    throw new TypeError(`${EXPECTED}; it is a server. Export a function that makes it: each request needs its own.`);
  }
  throw new TypeError(`${EXPECTED}; it is ${made === null ? 'null' : `of type ${typeof made}`}.`);
}
