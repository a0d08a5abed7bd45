import type { ListenFilter } from '../protocol/channel.js';
import { isObject } from '../../platform/text/json.js';
import { SessionLostError } from './http/http-wire.js';
import type { LegacySession } from './session-slots.js';
import type { Ears, ListenStream } from './listeners.js';
import { UpstreamError, UpstreamFailure } from '../protocol/mcp-errors.js';

/**
 * Listening to a legacy server: the one stream of its shared session brings list changes; changes of a resource are told
 * once it is subscribed to, which is done once however many want to hear of it.
 */
export class LegacyListening {
  private ears: Ears | null = null;

  constructor(private readonly session: (timeoutMs: number) => Promise<LegacySession>) {}

  /** A notification of the shared session. */
  hear(text: string, method: string): void {
    this.ears?.hear(text, method);
  }

  async start(filter: ListenFilter, ears: Ears, timeoutMs: number): Promise<ListenStream> {
    const session = await this.session(timeoutMs);
    this.ears = ears;
    const isTold = await session.startListening(timeoutMs, () => ears.lost());
    if (!isTold) return { honoured: {}, close: async () => undefined };
    const subscribed = new Set<string>();
    const change = async (wanted: ListenFilter, ms: number): Promise<ListenFilter> => {
      await subscribe(session, subscribed, wanted.resourceSubscriptions ?? [], ms);
      return told(session.hello.capabilities, wanted, subscribed);
    };
    try {
      return { honoured: await change(filter, timeoutMs), change, close: () => this.stop(session, subscribed, ears) };
    } catch (error) {
      await this.stop(session, subscribed, ears);
      throw error;
    }
  }

  private async stop(session: LegacySession, subscribed: Set<string>, ears: Ears): Promise<void> {
    if (this.ears === ears) this.ears = null;
    session.stopListening();
    // The session lives on for its callers, and the server would tell nobody.
    await subscribe(session, subscribed, [], UNSUBSCRIBE_MS).catch(() => undefined);
  }
}

/** Subscriptions that are asked for at once. */
const PARALLEL = 8;

/** How long telling a server may take that nobody wants to hear of a resource any more. */
const UNSUBSCRIBE_MS = 5_000;

/** Subscribes and unsubscribes so that `subscribed` is what is wanted, less what the server refuses. */
async function subscribe(
  session: LegacySession,
  subscribed: Set<string>,
  wanted: string[],
  timeoutMs: number,
): Promise<void> {
  if (subscribed.size === 0 && !declares(session.hello.capabilities, 'resources', 'subscribe')) return;
  const ask = (verb: string, uri: string) =>
    session
      .request({ method: `resources/${verb}`, params: JSON.stringify({ uri }), timeoutMs }, timeoutMs, false)
      .catch((error: unknown) => {
        if (!(error instanceof SessionLostError)) throw error;
        throw new UpstreamError('The MCP server forgot the session in which it should tell of changes.');
      });
  const gone = [...subscribed].filter((uri) => !wanted.includes(uri));
  for (const uri of gone) subscribed.delete(uri);
  const fresh = wanted.filter((uri) => !subscribed.has(uri));
  await someAtOnce(fresh, async (uri) => (await ask('subscribe', uri)).error ?? subscribed.add(uri));
  await someAtOnce(gone, (uri) =>
    ask('unsubscribe', uri).catch((error: unknown) => {
      // The server tells a little more than anybody hears.
      if (!(error instanceof UpstreamFailure)) throw error;
    }),
  );
}

async function someAtOnce(uris: string[], work: (uri: string) => Promise<unknown>): Promise<void> {
  const queue = uris.values();
  const worker = async () => {
    for (const uri of queue) await work(uri);
  };
  await Promise.all(Array.from({ length: Math.min(PARALLEL, uris.length) }, worker));
}

function told(capabilities: Record<string, unknown>, wanted: ListenFilter, subscribed: Set<string>): ListenFilter {
  const list = (key: 'toolsListChanged' | 'promptsListChanged' | 'resourcesListChanged', of: string): ListenFilter =>
    wanted[key] && declares(capabilities, of, 'listChanged') ? { [key]: true } : {};
  return {
    ...list('toolsListChanged', 'tools'),
    ...list('promptsListChanged', 'prompts'),
    ...list('resourcesListChanged', 'resources'),
    ...(subscribed.size === 0 ? {} : { resourceSubscriptions: [...subscribed] }),
  };
}

function declares(capabilities: Record<string, unknown>, of: string, what: string): boolean {
  const capability = capabilities[of];
  return isObject(capability) && capability[what] === true;
}
