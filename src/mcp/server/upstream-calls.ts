import type { CallerProfile, McpCall, McpReply } from '../protocol/channel.js';
import { memberText } from '../protocol/json-edit.js';
import { progressTokenIn } from '../protocol/messages.js';
import { members, slice, splice } from '../protocol/json-text.js';
import type { McpRequest, McpRequestContext } from './mcp-request.js';
import { isLoud } from './classify.js';
import { VIA_HEADER } from '../protocol/via.js';
import { InFlight } from './in-flight-calls.js';
import type { ResponseTarget } from './pending-input/pending-input-call.js';

/** How a request goes on to the upstream. */
export interface UpstreamRequestOptions {
  /** JSON text. */
  params: string | undefined;
  profile?: CallerProfile;
  onRequest?: McpCall['onRequest'];
  /** Which notifications ahead of the answer its client hears, besides its own progress. */
  hears: (method: string, text: string) => boolean;
  /** Where what precedes the answer goes, if that is not the stream of this request. */
  ears?: ResponseTarget;
}

/** Passes requests to channels, each with a progress token of ours in the place of the client's. */
export class UpstreamCalls {
  private readonly inFlight = new InFlight();
  private lastToken = 0;

  constructor(private readonly timeoutMs: number) {}

  /** @throws UpstreamFailure */
  async ask(
    { channel, method, id, request, sink }: McpRequest,
    { params, hears, ears: other, ...rest }: UpstreamRequestOptions,
  ): Promise<McpReply> {
    const { acceptsStream, cancellation } = request;
    const token = params && acceptsStream ? progressTokenIn(params) : null;
    const ours = `"slipway-${(this.lastToken += 1)}"`;
    const ears = other ?? { sink, token: token && slice(params ?? '', token) };
    const onNotification = (text: string, name: string) => {
      if (name === 'notifications/progress') relayProgress(text, ours, ears);
      else if (hears(name, text)) ears.sink.event(text);
    };
    const end = this.inFlight.begin(inFlightKey(request), id, cancellation);
    try {
      const reply = await channel.request({
        method,
        params: params && token ? splice(params, token, ours) : params,
        timeoutMs: this.timeoutMs,
        cancellation,
        timing: request.watch?.timing,
        invocationId: request.watch?.invocationId,
        caller: request.session?.key ?? request.caller,
        via: request.header(VIA_HEADER),
        ...(acceptsStream ? { onNotification } : {}),
        ...rest,
      });
      request.watch?.answered?.(reply);
      return reply;
    } finally {
      end();
    }
  }

  /** Cancels the client's own call with this id, JSON text. */
  cancel(request: McpRequestContext, id: string): void {
    this.inFlight.cancel(inFlightKey(request), id);
  }
}

/** Whether a log message, as a notification's text, is at least as grave as `least`. */
export function isLoudMessage(text: string, least: string): boolean {
  const params = memberText(text, 'params');
  const level = params?.startsWith('{') ? memberText(params, 'level') : undefined;
  return level === undefined || isLoud(JSON.parse(level), least);
}

/** Clients number their requests as they like, so one's calls are told apart by session, or the id it made up for one. */
function inFlightKey(request: McpRequestContext): string {
  return `${request.caller} ${request.session?.key ?? request.header('mcp-session-id') ?? ''}`;
}

/** Passes progress on under the client's own token; progress of anybody else is dropped. */
function relayProgress(text: string, ours: string, { token: theirs, sink }: ResponseTarget): void {
  const params = members(text).get('params');
  const token = params && text[params[0]] === '{' ? members(text, params[0]).get('progressToken') : undefined;
  if (theirs !== null && token && slice(text, token) === ours) sink.event(splice(text, token, theirs));
}
