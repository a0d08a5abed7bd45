import { isObject } from '../../../platform/text/json.js';
import type { Listening, ListenFilter } from '../../protocol/channel.js';
import { memberText } from '../../protocol/json-edit.js';
import { listChanges, RESOURCE_UPDATED } from '../../protocol/list-pages.js';
import { rpcCode } from '../../protocol/protocol.js';
import { errorText, resultText } from '../mcp-responses.js';
import type { McpRequest } from '../mcp-request.js';
import { marked, subscriptionMeta } from '../bridge/hop.js';
import { SUBSCRIPTIONS_MAX, URI_CHARS_MAX } from './live-sessions.js';

/** What is kept of the changes that are told before the upstream has said what it can tell. */
const EARLY_CHARS_MAX = 1024 * 1024;

/** How long an upstream may take to accept a listener. */
export const LISTEN_TIMEOUT_MS = 30_000;

/** Whether a notification, as its text, is one a listener with this filter wants: never more than it asked for. */
export function isWanted(filter: ListenFilter, method: string, text: string): boolean {
  const list = listChanges.get(method);
  if (list) return filter[list] === true;
  if (method !== RESOURCE_UPDATED) return false;
  const params = memberText(text, 'params');
  const uri = params?.startsWith('{') ? memberText(params, 'uri') : undefined;
  return uri !== undefined && (filter.resourceSubscriptions ?? []).includes(JSON.parse(uri) as string);
}

/** What a `subscriptions/listen` asks for; null when it is not of the revision's form, or asks for too many resources. */
export function filterOf(params: unknown): ListenFilter | null {
  const wanted = isObject(params) ? params.notifications : undefined;
  if (!isObject(wanted)) return null;
  const uris = wanted.resourceSubscriptions ?? [];
  const isUri = (uri: unknown) => typeof uri === 'string' && uri.length <= URI_CHARS_MAX;
  if (!Array.isArray(uris) || uris.length > SUBSCRIPTIONS_MAX || !uris.every(isUri)) return null;
  const flag = (name: string) => (wanted[name] === true ? { [name]: true } : {});
  return {
    ...flag('toolsListChanged'),
    ...flag('promptsListChanged'),
    ...flag('resourcesListChanged'),
    ...(uris.length > 0 ? { resourceSubscriptions: uris as string[] } : {}),
  };
}

/**
 * Serves one subscription until its client leaves or it is ended: says first what of it the upstream can tell, then what
 * the upstream tells, each under the subscription's id.
 */
export class Subscription {
  private listening: Listening | null = null;
  private isOver = false;
  /** What the upstream told before it was said what it can tell. */
  private early: string[] | null = [];
  private earlyChars = 0;
  private finish: () => void = () => undefined;

  constructor(private readonly asked: McpRequest) {}

  /** Resolves when it is over. @throws UpstreamFailure when the upstream cannot be listened to */
  async run(filter: ListenFilter): Promise<void> {
    const { channel, id, request, sink } = this.asked;
    const over = new Promise<void>((resolve) => (this.finish = resolve));
    const leave = () => this.stop();
    request.cancellation.notify(leave);
    try {
      const listener = {
        onNotification: (text: string, method: string) => isWanted(filter, method, text) && this.tell(text),
        onEnd: (reason: Error | null) => this.lost(reason),
      };
      const listening = await channel.listen(filter, listener, LISTEN_TIMEOUT_MS);
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

  /** Ends it as the revision has it: with a result. */
  end(): void {
    if (this.isOver) return;
    const { id, sink } = this.asked;
    const text = resultText(id, `{"resultType":"complete","_meta":${subscriptionMeta(id)}}`);
    this.stop();
    sink.reply(200, text);
  }

  /** The upstream says no more; the client may ask anew. */
  private lost(reason: Error | null): void {
    if (this.isOver) return;
    if (reason === null) return this.end();
    const { id, sink } = this.asked;
    this.stop();
    sink.reply(200, errorText(id, rpcCode.upstreamError, 'The MCP server stopped telling of changes: subscribe anew.'));
  }

  private tell(text: string): void {
    if (this.isOver) return;
    if (this.early) {
      this.earlyChars += text.length;
      if (this.earlyChars <= EARLY_CHARS_MAX) this.early.push(text);
    } else this.asked.sink.event(marked(text, this.asked.id));
  }

  private stop(): void {
    if (this.isOver) return;
    this.isOver = true;
    void this.listening?.close();
    this.finish();
  }
}
