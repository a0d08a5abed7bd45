import { describe, expect } from '@jest/globals';
import { verifies } from '../../../../test/support/verifies.js';
import { RevocationRegistry } from '../../../platform/http/revocation-registry.js';
import type { ListenFilter, UpstreamListener } from '../../protocol/channel.js';
import { Cancellation } from '../../protocol/cancellation.js';
import type { McpRequest } from '../mcp-request.js';
import { StreamLimiter } from './stream-limiter.js';
import { Subscriptions } from './subscriptions.js';

describe('a notification that comes while the upstream opens its stream', () => {
  verifies('mcp:subscriptions', 'follows the acknowledgement, as later ones do', async () => {
    const sent: string[] = [];
    const notify = (listener: UpstreamListener, list: string) => {
      const method = `notifications/${list}/list_changed`;
      listener.onNotification(JSON.stringify({ jsonrpc: '2.0', method }), method);
    };
    let end = () => undefined as void;
    const listen = async (filter: ListenFilter, listener: UpstreamListener) => {
      notify(listener, 'tools');
      notify(listener, 'prompts');
      end = () => {
        notify(listener, 'tools');
        listener.onEnd(null);
      };
      return { honoured: filter, close: () => Promise.resolve() };
    };
    const sink = {
      open: () => setImmediate(() => end()),
      event: (text: string) => sent.push((JSON.parse(text) as { method: string }).method),
      reply: () => sent.push('end'),
    };
    await new Subscriptions(new StreamLimiter(new RevocationRegistry())).serve({
      channel: { listen },
      id: '1',
      params: { notifications: { toolsListChanged: true } },
      request: { account: 'a', principal: 'k', acceptsStream: true, cancellation: new Cancellation() },
      sink,
    } as unknown as McpRequest);
    const changed = 'notifications/tools/list_changed';
    expect(sent).toEqual(['notifications/subscriptions/acknowledged', changed, changed, 'end']);
  });
});
