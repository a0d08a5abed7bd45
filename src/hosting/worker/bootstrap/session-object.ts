/**
 * One session of a stateful module, as a Durable Object of workerd: the MCP server in memory, the values that its code
 * stores on disk.
 *
 * After a restart of the process the server is created again and receives the stored `initialize`, so the client does
 * not notice. Opening an existing session continues it, if configuration, client and token are the same; otherwise a
 * new server takes its place and the values stay.
 *
 * A session is deleted 7 days after its last use, one without values after a day. A server that does not restore within
 * 10 s counts as failed, and the client gets 404 for an unknown session, and opens another one.
 */
import { withTimeout } from '../../../platform/limits/with-timeout.js';
import { rpcError, unknownSession, bearerOf, clean, CONFIG_HEADER, secretsIn, SEND_HEADER } from './requests.js';
import { LiveSession } from './live-session.js';
import type { Bindings, ObjectState, ServerFactory, Session } from './user-module.js';

const IDLE_MS_MAX = 7 * 86_400_000;

/** Idle lifetime of a session without stored values: 1 day, the lifetime of a client's session id. */
const EMPTY_IDLE_MS_MAX = 86_400_000;

/** Tolerance of the idle deadline, so that an active session writes it once an hour. */
const IDLE_SLACK_MS = 3_600_000;

/**
 * Timeout of waiting for the previous opening, and for restoring a server: code that never returns its server must not
 * block the next attempt.
 */
const TURN_MS_MAX = 10_000;

const OPENING = 'opening';

const VALUE = 'value:';

interface Opening {
  body: string;
  config: unknown;
}

export class McpSessionObject {
  private live: Promise<LiveSession> | undefined;
  private readonly env: Record<string, string>;
  private turn: Promise<unknown> = Promise.resolve();
  private keepsValues: boolean | undefined;

  constructor(
    private readonly state: ObjectState,
    bindings: Bindings,
    private readonly factory: ServerFactory,
  ) {
    this.env = secretsIn(bindings);
  }

  async fetch(request: Request): Promise<Response> {
    const config = request.headers.get(CONFIG_HEADER);
    const isSent = request.headers.get(SEND_HEADER) !== null;
    if (config !== null && !isSent) return this.open(clean(request), JSON.parse(decodeURIComponent(config)));
    const opening = await this.state.storage.get<Opening>(OPENING);
    if (!opening) return unknownSession();
    if (isSent) {
      const receiver = await this.resume(opening, undefined);
      if (!receiver) return unknownSession();
      const { message } = (await request.json()) as { message: unknown };
      await this.touch();
      return Response.json({ answer: await receiver.onMessage?.(message) });
    }
    if (request.method === 'DELETE') {
      await this.endSession();
      return new Response(null);
    }
    const live = await this.resume(opening, bearerOf(request));
    if (!live) return unknownSession();
    await this.touch();
    return live.handle(clean(request));
  }

  async alarm(): Promise<void> {
    await this.endSession();
  }

  /** Opens sessions one after the other, so that two processes that open a session concurrently share its server. */
  private async open(request: Request, config: unknown): Promise<Response> {
    const opening: Opening = { body: await request.text(), config };
    const before = this.turn.catch(() => undefined);
    const turn = withTimeout(TURN_MS_MAX, before, undefined).then(
      async () => (await this.reenter(opening, bearerOf(request))) ?? this.startSession(request, opening),
    );
    this.turn = turn;
    return turn;
  }

  /**
   * Continues the existing session. Returns undefined when it does not exist, or was opened differently or for another token.
   */
  private async reenter(opening: Opening, accessToken: string | undefined): Promise<Response | undefined> {
    const stored = await this.state.storage.get<Opening>(OPENING);
    if (!stored || !isSameOpening(stored, opening)) return undefined;
    const live = await this.resume(stored, accessToken);
    if (!live || live.initializeResult === null || live.accessToken !== accessToken) return undefined;
    await this.touch();
    const answer = { jsonrpc: '2.0', id: messageOf(opening).id, result: live.initializeResult };
    return Response.json(answer, { headers: { 'mcp-session-id': this.id } });
  }

  /** Starts the session again, and keeps its stored values. */
  private async startSession(request: Request, opening: Opening): Promise<Response> {
    const { url, headers } = request;
    const live = await this.begin(opening.config, bearerOf(request));
    const answer = await live.handle(new Request(url, { method: 'POST', headers, body: opening.body }));
    if (!live.hasBegun) {
      await live.close();
      return answer;
    }
    const before = this.live;
    this.live = Promise.resolve(live);
    void before?.then((replaced) => replaced.retire()).catch(() => undefined);
    await this.state.storage.put(OPENING, opening);
    await this.touch();
    return answer;
  }

  /** Returns undefined when a new version of the code does not restore the session: its client opens another. */
  private async resume(opening: Opening, accessToken: string | undefined): Promise<LiveSession | undefined> {
    try {
      this.live ??= inTime(this.reopen(opening, accessToken)).catch((error: unknown) => {
        this.live = undefined;
        throw error;
      });
      return await this.live;
    } catch (error) {
      this.state.waitUntil(Promise.reject(error));
      return undefined;
    }
  }

  private async reopen(opening: Opening, accessToken: string | undefined): Promise<LiveSession> {
    const live = await this.begin(opening.config, accessToken);
    const headers: Record<string, string> = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    };
    const post = (body: string) => live.handle(new Request('http://session/', { method: 'POST', headers, body }));
    await (await post(opening.body)).text();
    if (!live.hasBegun) throw new Error('The server refused to take up a session');
    headers['mcp-session-id'] = this.id;
    await (await post(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }))).text();
    return live;
  }

  private begin(config: unknown, accessToken: string | undefined): Promise<LiveSession> {
    return LiveSession.begin(this.factory, this.id, {
      config,
      env: { ...this.env },
      session: this.session(),
      accessToken,
    });
  }

  private async endSession(): Promise<void> {
    const live = await this.live?.catch(() => undefined);
    this.live = undefined;
    this.keepsValues = false;
    await this.state.storage.deleteAlarm();
    await this.state.storage.deleteAll();
    await live?.close();
  }

  private async touch(): Promise<void> {
    const { storage } = this.state;
    this.keepsValues ??= (await storage.list({ prefix: VALUE, limit: 1 })).size > 0;
    const due = Date.now() + (this.keepsValues ? IDLE_MS_MAX : EMPTY_IDLE_MS_MAX);
    const set = await storage.getAlarm();
    if (set === null || due - set > IDLE_SLACK_MS) await storage.setAlarm(due);
  }

  private session(): Session {
    const { storage } = this.state;
    return {
      id: this.id,
      get: (key) => storage.get(VALUE + key),
      set: async (key, value) => {
        await storage.put(VALUE + key, value);
        if (this.keepsValues) return;
        this.keepsValues = true;
        await this.touch();
      },
      delete: async (key) => {
        await storage.delete(VALUE + key);
      },
    };
  }

  private get id(): string {
    return this.state.id.toString();
  }
}

/** Closes a server that is created after the timeout. @throws errors of `work`; Error on timeout */
function inTime(work: Promise<LiveSession>): Promise<LiveSession> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new Error(`The server did not take up a session within ${TURN_MS_MAX / 1_000} seconds`));
      void work.then((late) => late.close()).catch(() => undefined);
    }, TURN_MS_MAX);
    work.finally(() => clearTimeout(timer)).then(resolve, reject);
  });
}

/** Returns the response to a session request for a stateless program, a mistake of the caller. */
export function noSessions(): Response {
  return rpcError(500, -32603, 'This server keeps sessions, but was not published as stateful. Publish it again.');
}

/** Returns the message in the body; an empty object if the body is malformed. */
function messageOf({ body }: Opening): { id?: unknown; params?: { capabilities?: object } } {
  try {
    return (JSON.parse(body) ?? {}) as { id?: unknown; params?: { capabilities?: object } };
  } catch {
    return {};
  }
}

/** Compares the configuration, and the client if it has capabilities. */
function isSameOpening(stored: Opening, requested: Opening): boolean {
  if (JSON.stringify(stored.config) !== JSON.stringify(requested.config)) return false;
  const { id, params } = messageOf(requested);
  if (id === undefined || params === undefined) return false;
  const declaresNothing = Object.keys(params.capabilities ?? {}).length === 0;
  return declaresNothing || JSON.stringify(messageOf(stored).params) === JSON.stringify(params);
}
