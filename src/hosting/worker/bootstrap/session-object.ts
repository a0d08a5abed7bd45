import { withTimeout } from '../../../platform/limits/with-timeout.js';
import { rpcError, unknownSession } from './rpc-errors.js';
import { LiveSession } from './live-session.js';
import { bearerOf, clean, CONFIG_HEADER, secretsIn, SEND_HEADER } from './requests.js';
import type { Bindings, ObjectState } from './worker-bindings.js';
import type { ServerFactory, Session } from './user-module.js';

/** A session nobody used for so long is forgotten with all it stored: 7 days. */
const IDLE_MS_MAX = 7 * 86_400_000;

/** One that stored nothing: 1 day, as long as the session of a client is good. */
const EMPTY_IDLE_MS_MAX = 86_400_000;

/** How late the end of an idle session may come; so a busy one writes once an hour. */
const IDLE_SLACK_MS = 3_600_000;

/**
 * How long an opening waits for the one before it, and anybody for the server of a session that is taken up: code that
 * never makes its server must not hold up the next try.
 */
const TURN_MS_MAX = 10_000;

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

/**
 * One session of a stateful server: its server lives here, in memory, and what it keeps lives on disk. After a restart
 * the server is made anew and hears the opening again, so the client notices nothing. Whoever opens a session that is there
 * goes on with it.
 */
export class McpSessionObject {
  private live: Promise<LiveSession> | undefined;
  private readonly env: Record<string, string>;
  /** The opening that is under way. */
  private turn: Promise<unknown> = Promise.resolve();
  /** The code stored something; undefined while nobody looked. */
  private keepsValues: boolean | undefined;

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
    if (request.method === 'DELETE') {
      await this.end();
      return new Response(null);
    }
    const live = await this.resumed(opening, bearerOf(request));
    if (!live) return unknownSession();
    await this.touch();
    return live.handle(clean(request));
  }

  /** The session was idle too long. */
  async alarm(): Promise<void> {
    await this.end();
  }

  /** One after the other, so that two processes that open a session at once share its server. */
  private async open(request: Request, config: unknown): Promise<Response> {
    const opening: Opening = { body: await request.text(), config };
    const before = this.turn.catch(() => undefined);
    const turn = withTimeout(TURN_MS_MAX, before, undefined).then(
      async () => (await this.reenter(opening, bearerOf(request))) ?? this.enter(request, opening),
    );
    this.turn = turn;
    return turn;
  }

  /** Goes on with the session as it is. Undefined when it is not there, or was opened in another way, or for another token. */
  private async reenter(opening: Opening, accessToken: string | undefined): Promise<Response | undefined> {
    const stored = await this.state.storage.get<Opening>(OPENING);
    if (!stored || !isSameOpening(stored, opening)) return undefined;
    const live = await this.resumed(stored, accessToken);
    if (!live || live.hello === null || live.accessToken !== accessToken) return undefined;
    await this.touch();
    const answer = { jsonrpc: '2.0', id: messageOf(opening).id, result: live.hello };
    return Response.json(answer, { headers: { 'mcp-session-id': this.id } });
  }

  /** Makes its server, or another one; what the session stored stays. */
  private async enter(request: Request, opening: Opening): Promise<Response> {
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

  /** Undefined when a new version of the code does not take the session up: its client opens another. */
  private async resumed(opening: Opening, accessToken: string | undefined): Promise<LiveSession | undefined> {
    try {
      return await this.resume(opening, accessToken);
    } catch (error) {
      this.state.waitUntil(Promise.reject(error));
      return undefined;
    }
  }

  /** The server in memory, or a new one that hears the opening again. */
  private resume(opening: Opening, accessToken: string | undefined): Promise<LiveSession> {
    this.live ??= inTime(this.reopen(opening, accessToken)).catch((error: unknown) => {
      this.live = undefined;
      throw error;
    });
    return this.live;
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

  private async receive(request: Request): Promise<Response> {
    const opening = await this.state.storage.get<Opening>(OPENING);
    if (!opening) return unknownSession();
    const live = await this.resumed(opening, undefined);
    if (!live) return unknownSession();
    const { message } = (await request.json()) as { message: unknown };
    await this.touch();
    return Response.json({ answer: await live.onMessage?.(message) });
  }

  private async end(): Promise<void> {
    const live = await this.live?.catch(() => undefined);
    this.live = undefined;
    this.keepsValues = false;
    await this.state.storage.deleteAlarm();
    await this.state.storage.deleteAll();
    await live?.close();
  }

  /** Puts the end of an idle session off. */
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

/** The server, unless it takes too long: then it is closed when it comes. @throws what `work` throws; Error when it is late */
function inTime(work: Promise<LiveSession>): Promise<LiveSession> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new Error(`The server did not take up a session within ${TURN_MS_MAX / 1_000} seconds`));
      void work.then((late) => late.close()).catch(() => undefined);
    }, TURN_MS_MAX);
    work.finally(() => clearTimeout(timer)).then(resolve, reject);
  });
}

/** A program that keeps no sessions was asked for one: a mistake in how it was started. */
export function noSessions(): Response {
  return rpcError(500, -32603, 'This server keeps sessions, but was not published as stateful. Publish it again.');
}

/** The opening's request; empty when it is none. */
function messageOf({ body }: Opening): { id?: unknown; params?: { capabilities?: object } } {
  try {
    return (JSON.parse(body) ?? {}) as { id?: unknown; params?: { capabilities?: object } };
  } catch {
    return {};
  }
}

/**
 * Whether a session that was opened in one way serves who opens it in another: with the same configuration, and the same
 * client, or one that declares nothing and so expects nothing of the session that it would not get.
 */
function isSameOpening(stored: Opening, given: Opening): boolean {
  if (JSON.stringify(stored.config) !== JSON.stringify(given.config)) return false;
  const { id, params } = messageOf(given);
  if (id === undefined || params === undefined) return false;
  const declaresNothing = Object.keys(params.capabilities ?? {}).length === 0;
  return declaresNothing || JSON.stringify(messageOf(stored).params) === JSON.stringify(params);
}
