/**
 * The step from a client's request to a call on a channel: progress token, cancellation, trace headers, caller and
 * notifications.
 *
 * Each call gets a progress token from Slipway, since tokens of different clients can be equal;
 * `notifications/progress` gets the client's own token back. `notifications/cancelled` finds its call by caller,
 * session and JSON-RPC id. Ids are not unique even for one caller, as some clients number every request 1: when two
 * calls match, neither is cancelled.
 */
import { Injectable } from '@nestjs/common';
import { Env } from '../../config/env.js';
import type { CallerProfile, McpCall, McpReply } from '../protocol/channel.js';
import { memberText } from '../protocol/json-edit.js';
import { progressTokenIn } from '../protocol/messages.js';
import { repairedReply } from '../protocol/item-repair.js';
import { members, slice, splice } from '../protocol/json-text.js';
import { listOf } from '../protocol/list-pages.js';
import type { Era } from '../protocol/protocol.js';
import type { McpRequest, McpRequestContext } from './mcp-request.js';
import { CallList } from '../../platform/limits/call-list.js';
import { isLoud } from './classify.js';
import { traceHeaders } from '../protocol/trace-context.js';
import { VIA_HEADER } from '../protocol/via.js';
import type { NotificationSink } from './pending-input/pending-input-call.js';
import type { Cancellation } from '../protocol/cancellation.js';

export interface UpstreamRequestOptions {
  params: string | undefined;
  profile?: CallerProfile;
  era?: Era;
  onRequest?: McpCall['onRequest'];
  /** Upstream session of a task; empty for a call that starts one. */
  session?: string;
  /** Timeout, `MCP_CALL_TIMEOUT` by default; every message restarts it. */
  timeoutMs?: number;
  /** Returns true for notifications that the client accepts; it always receives its own progress. */
  accepts: (method: string, text: string) => boolean;
  /** Receiver of notifications, by default the stream of the request. */
  target?: NotificationSink;
}

@Injectable()
export class UpstreamCalls {
  /** Running calls; their request ids are JSON text. */
  private readonly running = new CallList<{ caller: string; id: string; cancellation: Cancellation }>();
  private lastToken = 0;

  constructor(private readonly env: Env) {}

  /** @throws UpstreamFailure */
  async send(
    { channel, method, id, request, sink }: McpRequest,
    { params, accepts, target: other, profile, era, onRequest, session, timeoutMs }: UpstreamRequestOptions,
  ): Promise<McpReply> {
    const { acceptsStream, cancellation, observer } = request;
    const token = params && acceptsStream ? progressTokenIn(params) : null;
    const ownToken = `"slipway-${(this.lastToken += 1)}"`;
    const target = other ?? { sink, token: token && slice(params ?? '', token) };
    const onNotification = (text: string, name: string) => {
      if (!acceptsStream) return;
      if (name !== 'notifications/progress') {
        if (accepts(name, text)) target.sink.event(text);
        return;
      }
      const about = members(text).get('params');
      const tokenSpan = about && text[about[0]] === '{' ? members(text, about[0]).get('progressToken') : undefined;
      if (target.token !== null && tokenSpan && slice(text, tokenSpan) === ownToken)
        target.sink.event(splice(text, tokenSpan, target.token));
    };
    const end = this.running.add({ caller: inFlightKey(request), id, cancellation });
    try {
      const call: McpCall = {
        method,
        params: params && token ? splice(params, token, ownToken) : params,
        timeoutMs: timeoutMs ?? this.env.mcpCallTimeoutMs,
        cancellation,
        timing: observer?.timing,
        invocationId: observer?.invocationId,
        origin: request.origin,
        caller: request.session?.key ?? request.caller,
        via: request.header(VIA_HEADER),
        trace: traceHeaders(request.header),
        onNotification,
        onInterrupted: acceptsStream ? () => sink.openAnswer() : undefined,
        profile,
        era,
        session,
        onRequest,
      };
      const received = call.params;
      let reply: McpReply;
      try {
        reply = await channel.request(call);
      } finally {
        // A hook has replaced the arguments.
        if (call.params !== received) observer?.received(method, JSON.parse(call.params as string));
      }
      observer?.recordReply?.(reply);
      const list = listOf(method);
      return list ? await repairedReply(list, reply) : reply;
    } finally {
      end();
    }
  }

  /** Cancels a request. @param id JSON text */
  cancel(request: McpRequestContext, id: string): void {
    const caller = inFlightKey(request);
    const [only, ...more] = this.running.filter((call) => call.id === id && call.caller === caller);
    if (only && more.length === 0) only.cancellation.cancel();
  }
}

/** Returns true for a log message of at least this level. @param text a notification as JSON text */
export function isLoudMessage(text: string, least: string): boolean {
  const params = memberText(text, 'params');
  const level = params?.startsWith('{') ? memberText(params, 'level') : undefined;
  return level === undefined || isLoud(JSON.parse(level), least);
}

/** Returns the key of a call, which contains the session, since clients choose their request ids. */
function inFlightKey({ caller, session }: McpRequestContext): string {
  return `${caller} ${session?.key ?? ''}`;
}
