import { Injectable } from '@nestjs/common';
import { rpcCode } from '../../protocol/protocol.js';
import { replyError, resultText } from '../mcp-responses.js';
import type { McpRequest } from '../mcp-request.js';
import { StreamLimiter } from './stream-limiter.js';
import { isObject } from '../../../platform/text/json.js';
import type { CallerProfile, Listening, ListenFilter } from '../../protocol/channel.js';
import { uriIn, wants } from '../../client/listeners.js';
import { listFilter, RESOURCE_UPDATED } from '../../protocol/list-pages.js';
import { marked, subscriptionMeta } from '../bridge/hop.js';
import { SUBSCRIPTIONS_MAX, URI_CHARS_MAX } from './live-sessions.js';

/** Buffer limit for notifications that arrive before the acknowledgement. */
const EARLY_CHARS_MAX = 1024 * 1024;

/** Timeout of listening to an upstream. */
export const LISTEN_TIMEOUT_MS = 30_000;

/**
 * Serves one subscription until its client disconnects or it is ended: sends the acknowledgement with the honoured
 * filter, then the upstream's notifications, each with the subscription's id.
 */
class Subscription {
  private listening: Listening | null = null;
  private isOver = false;
  /** Notifications buffered before the acknowledgement. */
  private early: string[] | null = [];
  private earlyChars = 0;
  private finish: () => void = () => undefined;

  constructor(private readonly incoming: McpRequest) {}

  /** Resolves when the subscription has ended. @throws UpstreamFailure when listening to the upstream fails */
  async run(filter: ListenFilter, profile?: CallerProfile): Promise<void> {
    const { channel, id, request, sink } = this.incoming;
    const over = new Promise<void>((resolve) => (this.finish = resolve));
    const leave = () => this.stop();
    request.cancellation.notify(leave);
    try {
      const listener = {
        onNotification: (text: string, method: string) => isWanted(filter, method, text) && this.forward(text),
        onEnd: (reason: Error | null) => this.lost(reason),
      };
      const listening = await channel.listen(filter, listener, { timeoutMs: LISTEN_TIMEOUT_MS, profile });
      if (this.isOver) return void (await listening.close());
      this.listening = listening;
      const params = JSON.stringify({ notifications: listening.honoured });
      const acknowledged = `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":${params}}`;
      sink.open();
      sink.event(marked(acknowledged, id));
      for (const text of this.early ?? []) sink.event(marked(text, id));
      this.early = null;
      await over;
    } finally {
      request.cancellation.forget(leave);
    }
  }

  /** Ends the subscription with a result, as the revision requires. */
  end(): void {
    if (this.isOver) return;
    const { id, sink } = this.incoming;
    const text = resultText(id, `{"resultType":"complete","_meta":${subscriptionMeta(id)}}`);
    this.stop();
    sink.reply(200, text);
  }

  /** Ends the subscription after the upstream's stream has ended; the client may subscribe again. */
  private lost(reason: Error | null): void {
    if (this.isOver) return;
    if (reason === null) return this.end();
    this.stop();
    replyError(this.incoming, rpcCode.upstreamError, 'The MCP server ended its change notifications: subscribe anew.');
  }

  private forward(text: string): void {
    if (this.isOver) return;
    if (this.early) {
      this.earlyChars += text.length;
      if (this.earlyChars <= EARLY_CHARS_MAX) this.early.push(text);
    } else this.incoming.sink.event(marked(text, this.incoming.id));
  }

  private stop(): void {
    if (this.isOver) return;
    this.isOver = true;
    void this.listening?.close();
    this.finish();
  }
}

/** `subscriptions/listen` streams of modern clients. */
@Injectable()
export class Subscriptions {
  constructor(private readonly streams: StreamLimiter) {}

  /**
   * Serves one subscription until it ends.
   *
   * @param profile of the client's calls; updates of resources are subscribed to in their session
   *
   * @throws UpstreamFailure when listening to the upstream fails
   */
  async serve(incoming: McpRequest, profile?: CallerProfile): Promise<void> {
    const { params, request } = incoming;
    const filter = filterOf(params);
    if (!filter) {
      const message =
        'params.notifications must name the wanted notifications: three flags, and at most 100 resourceSubscriptions of 4,096 characters';
      return replyError(incoming, rpcCode.invalidParams, message);
    }
    if (!request.acceptsStream) {
      return replyError(incoming, rpcCode.invalidRequest, 'Accept text/event-stream to subscribe', 406);
    }
    const subscription = new Subscription(incoming);
    const leave = this.streams.enter(request, Infinity, () => subscription.end());
    if (!leave) {
      return replyError(incoming, rpcCode.internalError, 'Too many streams are open: close one first');
    }
    try {
      await subscription.run(filter, filter.resourceSubscriptions && profile);
    } finally {
      leave();
    }
  }
}

/** True if the filter includes a notification, given as JSON text. */
export function isWanted(filter: ListenFilter, method: string, text: string): boolean {
  return wants(filter, method, method === RESOURCE_UPDATED ? uriIn(text) : undefined);
}

/** Filter of a `subscriptions/listen` request; null when it is malformed, or names too many resources. */
function filterOf(params: unknown): ListenFilter | null {
  const requested = isObject(params) ? params.notifications : undefined;
  if (!isObject(requested)) return null;
  const uris = requested.resourceSubscriptions ?? [];
  const isUri = (uri: unknown) => typeof uri === 'string' && uri.length <= URI_CHARS_MAX;
  if (!Array.isArray(uris) || uris.length > SUBSCRIPTIONS_MAX || !uris.every(isUri)) return null;
  return {
    ...listFilter((flag) => requested[flag] === true),
    ...(uris.length > 0 ? { resourceSubscriptions: uris as string[] } : {}),
  };
}
