import { setTimeout as wait } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { parseMessage } from '../../protocol/messages.js';
import { rpcCode } from '../../protocol/protocol.js';
import { replyError, resultText } from '../mcp-responses.js';
import type { McpRequest } from '../mcp-request.js';
import { StreamLimiter } from './stream-limiter.js';
import { isObject } from '../../../platform/text/json.js';
import type { CallerProfile, Listening, ListenFilter } from '../../protocol/channel.js';
import { EARLY_CHARS_MAX, uriIn, matchesFilter } from '../../client/listeners.js';
import { changesOf, listFilter, RESOURCE_UPDATED } from '../../protocol/list-pages.js';
import { withSubscription, subscriptionMeta } from '../bridge/hop.js';
import { isFull } from './live-sessions.js';

export const LISTEN_TIMEOUT_MS = 30_000;

export const AGAIN_MS = 1_000;

/**
 * Sends the acknowledgement with the honoured filter, then the upstream's notifications, each with the subscription's
 * id. When the owner of the connection changes it, the subscription continues at the new channel, and its lists count
 * as changed.
 */
class Subscription {
  private listening: Listening | null = null;
  private isOver = false;
  private early: string[] | null = [];
  private earlyChars = 0;
  private finish: () => void = () => undefined;

  constructor(private readonly incoming: McpRequest) {}

  /** Resolves when the subscription has closed. @throws UpstreamFailure when listening to the upstream fails */
  async run(filter: ListenFilter, profile?: CallerProfile): Promise<void> {
    const { channel, id, request, sink } = this.incoming;
    const over = new Promise<void>((resolve) => (this.finish = resolve));
    const cancel = () => this.stop();
    request.cancellation.notify(cancel);
    try {
      const listener = {
        onNotification: (text: string, method: string) => {
          if (this.isOver || !isWanted(filter, method, text)) return;
          if (!this.early) return sink.event(withSubscription(text, id));
          this.earlyChars += text.length;
          if (this.earlyChars <= EARLY_CHARS_MAX) this.early.push(text);
        },
        onEnd: (reason: Error | null) => {
          if (this.isOver) return;
          if (reason === null) return void resume();
          this.stop();
          const message = 'The MCP server closed its change notifications: subscribe again.';
          replyError(this.incoming, rpcCode.upstreamError, message);
        },
      };
      const options = { timeoutMs: LISTEN_TIMEOUT_MS, profile };
      const resume = async () => {
        const before = this.listening;
        this.listening = null;
        void before?.close();
        try {
          if (!before || !request.reopen) return this.close();
          await wait(AGAIN_MS, undefined, { ref: false });
          if (this.isOver) return;
          const next = await (await request.reopen()).listen(filter, listener, options);
          if (this.isOver) return void (await next.close());
          this.listening = next;
          for (const text of changesOf(filter)) listener.onNotification(text, parseMessage(text)?.method as string);
        } catch {
          // The client learns the reason when it subscribes again.
          this.close();
        }
      };
      const listening = await channel.listen(filter, listener, options);
      if (this.isOver) return void (await listening.close());
      this.listening = listening;
      const params = JSON.stringify({ notifications: listening.honoured });
      const acknowledged = `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":${params}}`;
      sink.open();
      sink.event(withSubscription(acknowledged, id));
      for (const text of this.early ?? []) sink.event(withSubscription(text, id));
      this.early = null;
      await over;
    } finally {
      request.cancellation.forget(cancel);
    }
  }

  /** Sends a result, as the revision requires. */
  close(): void {
    if (this.isOver) return;
    const { id, sink } = this.incoming;
    const text = resultText(id, `{"resultType":"complete","_meta":${subscriptionMeta(id)}}`);
    this.stop();
    sink.reply(200, text);
  }

  private stop(): void {
    if (this.isOver) return;
    this.isOver = true;
    void this.listening?.close();
    this.finish();
  }
}

@Injectable()
export class Subscriptions {
  constructor(private readonly streamLimiter: StreamLimiter) {}

  /**
   * @param profile of the client's calls; updates of resources are subscribed to in their session
   *
   * @throws UpstreamFailure when listening to the upstream fails
   */
  async serve(incoming: McpRequest, profile?: CallerProfile): Promise<void> {
    const { params, request } = incoming;
    const requested = isObject(params) ? params.notifications : undefined;
    const uris = isObject(requested) ? (requested.resourceSubscriptions ?? []) : null;
    if (!isObject(requested) || !isTextList(uris) || isFull(uris)) {
      const message =
        'params.notifications must name the wanted notifications: three flags, and at most 100 resourceSubscriptions of 64 KB together';
      return replyError(incoming, rpcCode.invalidParams, message);
    }
    if (!request.acceptsStream) {
      return replyError(incoming, rpcCode.invalidRequest, 'Accept text/event-stream to subscribe', 406);
    }
    const filter: ListenFilter = {
      ...listFilter((flag) => requested[flag] === true),
      ...(uris.length > 0 ? { resourceSubscriptions: uris } : {}),
    };
    const subscription = new Subscription(incoming);
    const leave = this.streamLimiter.openStream(request, Infinity, () => subscription.close());
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

/** Returns true if the filter contains the notification. @param text JSON */
export function isWanted(filter: ListenFilter, method: string, text: string): boolean {
  return matchesFilter(filter, method, method === RESOURCE_UPDATED ? uriIn(text) : undefined);
}

function isTextList(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}
