import type { ListenFilter } from '../protocol/channel.js';
import { isObject } from '../../platform/text/json.js';
import { SessionLostError } from './http/http-wire.js';
import type { LegacySession } from './session-slots.js';
import type { ListenStreamHandlers, ListenStream } from './listeners.js';
import { UpstreamError, UpstreamFailure } from '../protocol/mcp-errors.js';

/**
 * Change notifications of a legacy server. List changes arrive on the stream of its shared session. Resource updates
 * are subscribed to once per resource, however many listeners want them.
 */
export class LegacyListening {
  private handlers: ListenStreamHandlers | null = null;

  constructor(private readonly session: (timeoutMs: number) => Promise<LegacySession>) {}

  /** Handles a notification of the shared session. */
  onNotification(text: string, method: string): void {
    this.handlers?.onNotification(text, method);
  }

  async start(filter: ListenFilter, handlers: ListenStreamHandlers, timeoutMs: number): Promise<ListenStream> {
    const session = await this.session(timeoutMs);
    this.handlers = handlers;
    const isTold = await session.startListening(timeoutMs, () => handlers.lost());
    if (!isTold) return { honoured: {}, close: async () => undefined };
    const subscribed = new Set<string>();
    const change = async (wanted: ListenFilter, ms: number): Promise<ListenFilter> => {
      await subscribe(session, subscribed, wanted.resourceSubscriptions ?? [], ms);
      return told(session.identity.capabilities, wanted, subscribed);
    };
    try {
      return {
        honoured: await change(filter, timeoutMs),
        change,
        close: () => this.stop(session, subscribed, handlers),
      };
    } catch (error) {
      await this.stop(session, subscribed, handlers);
      throw error;
    }
  }

  private async stop(session: LegacySession, subscribed: Set<string>, handlers: ListenStreamHandlers): Promise<void> {
    if (this.handlers === handlers) this.handlers = null;
    session.stopListening();
    // Unsubscribed because the session stays open for its callers while nobody listens.
    await subscribe(session, subscribed, [], UNSUBSCRIBE_MS).catch(() => undefined);
  }
}

/** Limit of concurrent subscribe requests. */
const PARALLEL = 8;

/** Timeout of unsubscribing from a resource. */
const UNSUBSCRIBE_MS = 5_000;

/**
 * Subscribes and unsubscribes so that `subscribed` equals the wanted resources, without those that the server refuses.
 */
async function subscribe(
  session: LegacySession,
  subscribed: Set<string>,
  wanted: string[],
  timeoutMs: number,
): Promise<void> {
  if (subscribed.size === 0 && !declares(session.identity.capabilities, 'resources', 'subscribe')) return;
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
      // A failed unsubscribe only causes notifications without a listener.
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
