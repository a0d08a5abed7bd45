import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import { rpcError, unknownSession } from './answers.js';
import { bearerOf, clean, CONFIG_HEADER, secretsIn, SEND_HEADER } from './requests.js';
import type { Bindings, ObjectState, ObjectStorage } from './runtime.js';
import type { MessageHandler, SdkServer, ServerFactory, Session } from './user-module.js';

/** A session nobody used for so long is forgotten with all it stored: 7 days. */
const IDLE_MS_MAX = 7 * 86_400_000;

/** How late the end of an idle session may come; so a busy one writes once an hour. */
const IDLE_SLACK_MS = 3_600_000;

/** Where the opening of the session stands in its store. */
const OPENING = 'opening';

/** Before the names of what the code stores, so that they meet none of ours. */
const VALUE = 'value:';

/** What a session began with: enough to begin it again in a new process. */
interface Opening {
  /** The initialize request, as it came. */
  body: string;
  config: unknown;
}

interface Live {
  server: SdkServer;
  transport: WebStandardStreamableHTTPServerTransport;
  onMessage: MessageHandler | undefined;
}

/**
 * One session of a stateful server: its server lives here, in memory, and what it keeps lives on disk. After a restart
 * the server is made anew and hears the opening again, so the client notices nothing.
 */
export class McpSessionObject {
  private live: Promise<Live> | undefined;
  private readonly env: Record<string, string>;

  constructor(
    private readonly state: ObjectState,
    bindings: Bindings,
    private readonly factory: ServerFactory,
  ) {
    this.env = secretsIn(bindings);
  }

  async fetch(request: Request): Promise<Response> {
    if (request.headers.get(SEND_HEADER) !== null) return this.receive(request);
    const config = request.headers.get(CONFIG_HEADER);
    if (config !== null) return this.open(clean(request), JSON.parse(decodeURIComponent(config)));
    const opening = await this.state.storage.get<Opening>(OPENING);
    if (!opening) return unknownSession();
    const live = await this.resumed(opening, bearerOf(request));
    if (!live) return unknownSession();
    await touch(this.state.storage);
    const answer = await live.transport.handleRequest(clean(request));
    if (request.method === 'DELETE' && answer.ok) await this.end();
    return answer;
  }

  /** The session was idle too long. */
  async alarm(): Promise<void> {
    await this.end();
  }

  private async open(request: Request, config: unknown): Promise<Response> {
    const body = await request.text();
    const live = await this.begin(config, bearerOf(request));
    const answer = await live.transport.handleRequest(
      new Request(request.url, { method: 'POST', headers: request.headers, body }),
    );
    if (live.transport.sessionId === undefined) {
      await live.server.close?.();
      return answer;
    }
    this.live = Promise.resolve(live);
    await this.state.storage.put(OPENING, { body, config } satisfies Opening);
    await touch(this.state.storage);
    return answer;
  }

  /** Undefined when a new version of the code does not take the session up: its client opens another. */
  private async resumed(opening: Opening, accessToken: string | undefined): Promise<Live | undefined> {
    try {
      return await this.resume(opening, accessToken);
    } catch (error) {
      this.state.waitUntil(Promise.reject(error));
      return undefined;
    }
  }

  /** The server in memory, or a new one that hears the opening again. */
  private resume(opening: Opening, accessToken: string | undefined): Promise<Live> {
    this.live ??= this.reopen(opening, accessToken).catch((error: unknown) => {
      this.live = undefined;
      throw error;
    });
    return this.live;
  }

  private async reopen(opening: Opening, accessToken: string | undefined): Promise<Live> {
    const live = await this.begin(opening.config, accessToken);
    const headers: Record<string, string> = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    };
    const post = (body: string) =>
      live.transport.handleRequest(new Request('http://session/', { method: 'POST', headers, body }));
    await (await post(opening.body)).text();
    if (live.transport.sessionId === undefined) throw new Error('The server refused to take up a session');
    headers['mcp-session-id'] = this.id;
    await (await post(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }))).text();
    return live;
  }

  private async begin(config: unknown, accessToken: string | undefined): Promise<Live> {
    const transport = new WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: () => this.id });
    const live: Partial<Live> = { transport };
    live.server = await this.factory({
      config,
      env: { ...this.env },
      session: this.session(),
      onMessage: (handler) => (live.onMessage = handler),
      ...(accessToken === undefined ? {} : { accessToken }),
    });
    await live.server.connect(transport);
    return live as Live;
  }

  private async receive(request: Request): Promise<Response> {
    const opening = await this.state.storage.get<Opening>(OPENING);
    if (!opening) return unknownSession();
    const live = await this.resumed(opening, undefined);
    if (!live) return unknownSession();
    const { message } = (await request.json()) as { message: unknown };
    await touch(this.state.storage);
    return Response.json({ answer: await live.onMessage?.(message) });
  }

  private async end(): Promise<void> {
    const live = await this.live?.catch(() => undefined);
    this.live = undefined;
    await this.state.storage.deleteAlarm();
    await this.state.storage.deleteAll();
    await live?.server.close?.();
  }

  private session(): Session {
    const { storage } = this.state;
    return {
      id: this.id,
      get: (key) => storage.get(VALUE + key),
      set: (key, value) => storage.put(VALUE + key, value),
      delete: async (key) => {
        await storage.delete(VALUE + key);
      },
    };
  }

  private get id(): string {
    return this.state.id.toString();
  }
}

/** Puts the end of an idle session off. */
async function touch(storage: ObjectStorage): Promise<void> {
  const due = Date.now() + IDLE_MS_MAX;
  const set = await storage.getAlarm();
  if (set === null || due - set > IDLE_SLACK_MS) await storage.setAlarm(due);
}

/** A program that keeps no sessions was asked for one: a mistake in how it was started. */
export function noSessions(): Response {
  return rpcError(500, -32603, 'This server keeps sessions, but was not published as stateful. Publish it again.');
}
