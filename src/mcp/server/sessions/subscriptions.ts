import { rpcCode } from '../../protocol/protocol.js';
import { errorText } from '../mcp-responses.js';
import type { McpRequest } from '../mcp-request.js';
import { filterOf, Subscription } from './subscription.js';
import type { Streams } from './streams.js';

/** The `subscriptions/listen` streams of modern clients. */
export class Subscriptions {
  constructor(private readonly streams: Streams) {}

  /** Serves one until it is over. @throws UpstreamFailure when the upstream cannot be listened to */
  async serve(asked: McpRequest): Promise<void> {
    const { params, id, sink, request } = asked;
    const filter = filterOf(params);
    if (!filter) {
      const message =
        'params.notifications must say what to tell: three flags, and at most 100 resourceSubscriptions of 4,096 characters';
      return sink.reply(200, errorText(id, rpcCode.invalidParams, message));
    }
    if (!request.acceptsStream) {
      return sink.reply(406, errorText(id, rpcCode.invalidRequest, 'Accept text/event-stream to subscribe'));
    }
    const subscription = new Subscription(asked);
    const leave = this.streams.enter(request.account, Infinity, () => subscription.end());
    if (!leave) {
      return sink.reply(200, errorText(id, rpcCode.internalError, 'Too many streams are open: close one first'));
    }
    try {
      await subscription.run(filter);
    } finally {
      leave();
    }
  }
}
