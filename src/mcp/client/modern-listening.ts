import { isObject } from '../../platform/text/json-object.js';
import type { ListenFilter } from '../protocol/channel.js';
import { fromHttpStatus, UpstreamError } from '../protocol/mcp-errors.js';
import { parseMessage, requestText, withEnvelope, withoutSubscriptionId } from '../protocol/messages.js';
import type { HttpWire } from './http/http-wire.js';
import { common } from './listen-filter.js';
import type { OpenListening } from './listeners.js';
import { withinDeadline } from '../protocol/deadline.js';

const METHOD = 'subscriptions/listen';

/**
 * Listening to a modern server: one `subscriptions/listen`, whose first message says what of the filter the server tells.
 * A server that refuses it, or does not know it, tells nothing.
 */
export function modernListening(wire: HttpWire, headers: Record<string, string>): OpenListening {
  return async (filter, ears, timeoutMs) => {
    let acknowledge: (honoured: ListenFilter) => void = () => undefined;
    let fail: (error: Error) => void = () => undefined;
    const acknowledged = new Promise<ListenFilter>((resolve, reject) => {
      acknowledge = resolve;
      fail = reject;
    });
    acknowledged.catch(() => undefined);
    let isEnded = false;
    const end = () => {
      isEnded = true;
      fail(new UpstreamError(`${wire.target.url.host} ended the stream on which it should tell of changes.`));
      ears.lost();
    };
    const stream = await wire.stream({
      method: 'POST',
      headers: { ...headers, 'mcp-method': METHOD },
      body: requestText(wire.takeId(), METHOD, withEnvelope(JSON.stringify({ notifications: filter }))),
      timeoutMs,
      onMessage: (data) => {
        const head = parseMessage(data);
        if (typeof head?.method !== 'string') {
          // An error says that it tells nothing; a result that it is over, which the stream's own end says too.
          if (head?.error) acknowledge({});
        } else if (head.method === 'notifications/subscriptions/acknowledged') {
          acknowledge(common(filter, honouredIn(head.params)));
        } else ears.hear(withoutSubscriptionId(data), head.method);
      },
      onEnd: end,
    });
    if (stream.status >= 500 || stream.status === 429) throw fromHttpStatus(stream.status, wire.target.url, undefined);
    if (stream.text !== null) return { honoured: {}, close: async () => undefined };
    const late = `${wire.target.url.host} did not say what changes it tells of.`;
    try {
      const honoured = isEnded ? await acknowledged : await withinDeadline(acknowledged, timeoutMs, late);
      return { honoured, close: async () => stream.close() };
    } catch (error) {
      stream.close();
      throw error;
    }
  };
}

function honouredIn(params: unknown): ListenFilter {
  const told = isObject(params) && isObject(params.notifications) ? params.notifications : {};
  const { resourceSubscriptions: uris } = told;
  return {
    toolsListChanged: told.toolsListChanged === true,
    promptsListChanged: told.promptsListChanged === true,
    resourcesListChanged: told.resourcesListChanged === true,
    resourceSubscriptions: Array.isArray(uris) ? uris.filter((uri) => typeof uri === 'string') : [],
  };
}
