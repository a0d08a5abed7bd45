import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import {
  rpcError,
  unknownSession,
  bearerOf,
  clean,
  CONFIG_HEADER,
  invocationOf,
  withHeaders,
  secretsIn,
  SEND_HEADER,
} from './requests.js';
import { AUTH_ADAPTER_PATH, SCAN_HEADER, SESSION_HEADER } from '../../hosting.types.js';
import { answerAuth } from './auth-adapter.js';
import { readConfig, type Schema } from './config.js';
import {
  formOf,
  type Bindings,
  type ExecutionContext,
  type ObjectNamespace,
  type ObjectState,
  type ServerFactory,
  type UserModule,
} from './user-module.js';
import { McpSessionObject, noSessions } from './session-object.js';

interface Opened {
  worker: { fetch(request: Request, env: Bindings, context: ExecutionContext): Promise<Response> };
  McpSession: unknown;
}

/**
 * @param schema of the configuration; null for anything
 * @throws TypeError for a module of neither kind, with a message for its author
 */
export function open(module: UserModule, schema: Schema | null): Opened {
  const form = formOf(module);
  if (form.kind === 'worker') {
    return {
      worker: {
        fetch: async (request, env, context) => {
          const serve = async () => form.fetch(clean(request), env, context);
          // Callers get the 500 of workerd.
          return request.headers.has(SCAN_HEADER) ? guarded(context, request, serve) : serve();
        },
      },
      McpSession: module.McpSession ?? class {},
    };
  }
  const { factory } = form;
  const server = new FactoryWorker(module, factory, schema);
  return {
    worker: { fetch: (request, env, context) => server.fetch(request, env, context) },
    McpSession: class {
      private readonly session: McpSessionObject;
      constructor(
        private readonly state: ObjectState,
        env: Bindings,
      ) {
        this.session = new McpSessionObject(state, env, factory);
      }
      fetch(request: Request) {
        return guarded(this.state, request, () => this.session.fetch(request));
      }
      alarm() {
        return this.session.alarm();
      }
    },
  };
}

const DISK_FULL = 'This service has no space left for the values of this session: its operator must free some.';

/** The program cannot open the file of a session, for example a new one when the disk is full. */
class SessionFileError extends Error {
  constructor(cause: unknown) {
    super('The file of this session cannot be opened: the disk of this service may be full.', { cause });
  }
}

/** Reports exceptions in the author's log and to a scan, not to callers. */
async function guarded(
  context: { waitUntil(promise: Promise<unknown>): void },
  request: Request,
  answer: () => Promise<Response>,
): Promise<Response> {
  try {
    return await answer();
  } catch (error) {
    context.waitUntil(Promise.reject(error));
    // Values of a session are in SQLite, which reports a full disk like this.
    if (String(error).includes('SQLITE_FULL')) return rpcError(507, -32603, DISK_FULL);
    if (error instanceof SessionFileError) return rpcError(507, -32603, error.message);
    return rpcError(500, -32603, request.headers.has(SCAN_HEADER) ? String(error) : 'Internal error');
  }
}

class FactoryWorker {
  constructor(
    private readonly module: UserModule,
    private readonly factory: ServerFactory,
    private readonly schema: Schema | null,
  ) {}

  fetch(request: Request, env: Bindings, context: ExecutionContext): Promise<Response> {
    return guarded(context, request, () => this.respond(request, env));
  }

  private async respond(request: Request, env: Bindings): Promise<Response> {
    const url = new URL(request.url);
    const { createAuthAdapter, handleHttp } = this.module;
    if (createAuthAdapter && url.pathname === AUTH_ADAPTER_PATH) {
      const config = await this.config(url);
      if (config instanceof Response) return config;
      return answerAuth(clean(request), createAuthAdapter, secretsIn(env), config.value);
    }
    if (handleHttp && url.pathname !== '/') {
      return handleHttp(clean(request), { env: secretsIn(env), ...this.sessions(request, env) });
    }
    return this.module.stateful === true ? this.stateful(request, url, env) : this.stateless(request, url, env);
  }

  private async stateless(request: Request, url: URL, env: Bindings): Promise<Response> {
    if (request.method === 'GET' || request.method === 'HEAD') {
      const headers = { allow: 'POST, DELETE' };
      return rpcError(405, -32000, 'Method not allowed: this server is stateless and has no event stream', { headers });
    }
    const config = await this.config(url);
    if (config instanceof Response) return config;
    const token = this.tokenOf(request);
    const server = await this.factory({
      config: config.value,
      env: secretsIn(env),
      ...(token === undefined ? {} : { accessToken: token }),
    });
    const transport = new WebStandardStreamableHTTPServerTransport({});
    await server.connect(transport);
    return transport.handleRequest(clean(request));
  }

  private async stateful(request: Request, url: URL, env: Bindings): Promise<Response> {
    const namespace = env.MCP_SESSION;
    if (!namespace) return noSessions();
    const headers = new Headers(request.headers);
    headers.delete(SEND_HEADER);
    headers.delete(CONFIG_HEADER);
    if (this.tokenOf(request) === undefined) headers.delete('authorization');
    const sessionId = request.headers.get('mcp-session-id');
    const name = request.headers.get(SESSION_HEADER);
    if (sessionId !== null) {
      const stub = stubOf(namespace, sessionId);
      return stub ? stub.fetch(withHeaders(request, headers)) : unknownSession();
    }
    if (name !== null && request.method === 'DELETE') {
      return namespace.get(namespace.idFromName(name)).fetch(withHeaders(request, headers));
    }
    if (request.method !== 'POST') {
      return rpcError(400, -32000, 'Bad Request: Mcp-Session-Id header is required');
    }
    const config = await this.config(url);
    if (config instanceof Response) return config;
    headers.set(CONFIG_HEADER, encodeURIComponent(JSON.stringify(config.value ?? null)));
    const id = name === null ? namespace.newUniqueId() : namespace.idFromName(name);
    const answer = await namespace
      .get(id)
      .fetch(withHeaders(request, headers))
      .catch((error: unknown) => {
        // workerd reports its own errors only by this message; exceptions of the code are responses here.
        throw String(error).includes('internal error; reference') ? new SessionFileError(error) : error;
      });
    return name === null ? answer : markKept(answer);
  }

  private async config(url: URL): Promise<{ value: unknown } | Response> {
    const read = await readConfig(url.searchParams, this.schema, this.module.configSchema);
    if ('config' in read) return { value: read.config };
    const problems = read.errors.map(({ path, message }) => `${path || 'configuration'}: ${message}`).join('; ');
    return rpcError(400, -32602, `Invalid configuration: ${problems}`, { data: { errors: read.errors } });
  }

  /** Returns the token issued to the user; only servers with an auth adapter have one. */
  private tokenOf(request: Request): string | undefined {
    return this.module.createAuthAdapter ? bearerOf(request) : undefined;
  }

  private sessions(request: Request, env: Bindings) {
    const namespace = env.MCP_SESSION;
    if (this.module.stateful !== true || !namespace) return {};
    const send = async (sessionId: string, message: unknown): Promise<unknown> => {
      const headers = { ...invocationOf(request), [SEND_HEADER]: '1' };
      const body = JSON.stringify({ message });
      const stub = stubOf(namespace, sessionId);
      const answer = await stub?.fetch(new Request('http://session/', { method: 'POST', headers, body }));
      if (!answer || answer.status === 404) throw new Error('Session not found');
      if (!answer.ok) throw new Error('The session failed to handle the message');
      return ((await answer.json()) as { answer?: unknown }).answer;
    };
    return { sessions: { send } };
  }
}

function markKept(answer: Response): Response {
  const headers = new Headers(answer.headers);
  headers.set(SESSION_HEADER, 'kept');
  return new Response(answer.body, { status: answer.status, headers });
}

/** Returns null for an id that is not a session of this server. */
function stubOf(namespace: ObjectNamespace, id: string) {
  if (!/^[0-9a-f]{64}$/.test(id)) return null;
  try {
    return namespace.get(namespace.idFromString(id));
  } catch {
    return null;
  }
}
