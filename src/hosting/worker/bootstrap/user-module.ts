import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';

/** Types of workerd used by the wrapper beyond the web standards. */

export interface ExecutionContext {
  waitUntil(promise: Promise<unknown>): void;
}

export interface ObjectStorage {
  get<T>(key: string): Promise<T | undefined>;
  put(key: string, value: unknown): Promise<void>;
  delete(key: string): Promise<boolean>;
  deleteAll(): Promise<void>;
  list(options: { prefix: string; limit: number }): Promise<Map<string, unknown>>;
  getAlarm(): Promise<number | null>;
  setAlarm(at: number): Promise<void>;
  deleteAlarm(): Promise<void>;
}

export interface ObjectState {
  readonly id: { toString(): string };
  readonly storage: ObjectStorage;
  waitUntil(promise: Promise<unknown>): void;
}

export interface ObjectNamespace {
  newUniqueId(): ObjectId;
  /** Returns the deterministic id of a name, unguessable without the name. */
  idFromName(name: string): ObjectId;
  /** @throws TypeError for an id that this namespace did not create */
  idFromString(text: string): ObjectId;
  get(id: ObjectId): { fetch(request: Request): Promise<Response> };
}

interface ObjectId {
  toString(): string;
}

export type Bindings = Record<string, unknown> & { MCP_SESSION?: ObjectNamespace };

/** Common interface of `Server` and `McpServer` in all SDK versions. */
export interface SdkServer {
  connect(transport: Transport): Promise<void>;
  close?(): Promise<void>;
}

export interface Session {
  id: string;
  get(key: string): Promise<unknown>;
  set(key: string, value: unknown): Promise<void>;
  delete(key: string): Promise<void>;
}

export type MessageHandler = (message: unknown) => unknown;

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
  context: { env: Record<string, string>; sessions?: { send(sessionId: string, message: unknown): Promise<unknown> } },
) => Response | Promise<Response>;

export interface ConfigParser {
  safeParseAsync(value: unknown): Promise<ParseResult>;
}

export type ParseResult =
  | { success: true; data: unknown }
  | { success: false; error: { issues: { path: PropertyKey[]; message: string; expected?: unknown }[] } };

export interface UserModule {
  default?: unknown;
  stateful?: unknown;
  configSchema?: unknown;
  createAuthAdapter?: (context: { env: Record<string, string> }) => AuthAdapter | Promise<AuthAdapter>;
  handleHttp?: HttpHandler;
  /** Durable Object class for sessions of a plain worker. */
  McpSession?: unknown;
}

export type ModuleForm = { kind: 'factory'; factory: ServerFactory } | { kind: 'worker'; fetch: FetchHandler };

const EXPECTED = 'The default export must be a function that returns an MCP server, or an object with a fetch handler';

/** @throws TypeError with a message for the author */
export function formOf(module: UserModule): ModuleForm {
  const exported = module.default;
  if (exported === undefined) throw new TypeError(`${EXPECTED}; the module has no default export.`);
  if (typeof exported === 'function') {
    if (/^class\b/.test(Function.prototype.toString.call(exported))) throw new TypeError(`${EXPECTED}; it is a class.`);
    return { kind: 'factory', factory: exported as ServerFactory };
  }
  const { fetch: handler, connect } = (typeof exported === 'object' && exported !== null ? exported : {}) as Record<
    string,
    unknown
  >;
  if (typeof handler === 'function') {
    return {
      kind: 'worker',
      fetch: (request, env, context) => (handler as FetchHandler).call(exported, request, env, context),
    };
  }
  if (typeof connect === 'function') {
    throw new TypeError(`${EXPECTED}; it is a server. Export a function that makes it: each request needs its own.`);
  }
  throw new TypeError(`${EXPECTED}; it is ${exported === null ? 'null' : `of type ${typeof exported}`}.`);
}
