/**
 * Handles one POST of a client of any revision, over the channel to an upstream of any era.
 *
 * `classify.ts` decides by which era a message is served. Responses of the client go to the waiting upstream request;
 * notifications get 202, and those about a session with state reach its upstream. Batches exist in 2025-03-26 only. No
 * handshake is required; a session only adds its stored state. If client and upstream have the same era, messages are
 * forwarded byte for byte except for ids and progress tokens.
 *
 * Malformed messages, and those with a repeated member, are rejected with 400 and a JSON-RPC error. Failures of the
 * upstream are JSON-RPC replies with 200; rejections by this service have their HTTP status.
 */
import { Injectable } from '@nestjs/common';
import { memberText, withoutMembers } from '../protocol/json-edit.js';
import { isObject } from '../../platform/text/json.js';
import { statusOf } from '../../platform/errors/domain-error.js';
import type { Channel } from '../protocol/channel.js';
import { slice, type Span, uniqueMembers } from '../protocol/json-text.js';
import { CallerLeftError } from '../protocol/mcp-errors.js';
import type { RpcHead } from '../protocol/messages.js';
import { rpcCode } from '../protocol/protocol.js';
import { agreedVersion, elicitingFailureText, errorText, failureText } from './mcp-responses.js';
import type { McpRequestContext, McpResponseSink } from './mcp-request.js';
import { batchFault, serveBatch } from './batch.js';
import { DomainError } from '../../platform/errors/domain-error.js';
import { takesUrls } from './bridge/input.js';
import { classify, clientNameIn, invalid, shapeFault, type Classified, type Fault } from './classify.js';
import { capabilityNames, takesPages } from './client-capabilities.js';
import { McpRefusal, McpSessionLostError } from './mcp-server.errors.js';
import { LegacyServer } from './legacy-server.js';
import { ModernServer } from './modern-server.js';
import { PendingClientRequests } from './pending-client-requests.js';
import { LiveSessions } from './sessions/live-sessions.js';
import { UpstreamCalls } from './upstream-calls.js';

/** Notifications that this service itself sends to upstreams, or whose token belongs to a request that it sent. */
const OWN_NOTIFICATIONS: ReadonlySet<string> = new Set(['notifications/initialized', 'notifications/progress']);

@Injectable()
export class McpServer {
  constructor(
    private readonly legacyServer: LegacyServer,
    private readonly modernServer: ModernServer,
    private readonly pendingClientRequests: PendingClientRequests,
    private readonly liveSessions: LiveSessions,
    private readonly upstreamCalls: UpstreamCalls,
  ) {}

  /**
   * Serves a request. Failures of the upstream become JSON-RPC replies.
   *
   * @param channel upstream channel, or the reason why there is none
   * @throws TooManyError for a batch with more messages than the caller may send in this minute
   */
  async serve(channel: Channel | McpRefusal, request: McpRequestContext, sink: McpResponseSink): Promise<void> {
    let message: unknown;
    try {
      message = JSON.parse(request.text);
    } catch {
      return refuse(sink, { status: 400, code: rpcCode.parseError, message: 'The body is not valid JSON' });
    }
    // MCP 2026-07-28 has no sessions, and `initialize` opens one whatever id the client still sends.
    const classified = isObject(message) ? classify(message, request.headers) : null;
    const mayHaveSession = !isObject(message) || (message.method !== 'initialize' && classified?.era === 'legacy');
    if (request.findSession && mayHaveSession) {
      try {
        const session = request.findSession();
        request.session = session instanceof Promise ? await session : session;
      } catch (error) {
        if (!(error instanceof McpSessionLostError)) throw error;
        const fault = { status: statusOf[error.kind], code: error.rpcCode, message: error.message };
        return refuse(sink, fault, isObject(message) ? idOf(message, request.text) : undefined);
      }
    }
    if (Array.isArray(message)) {
      const fault = batchFault(message, request);
      if (fault) return refuse(sink, fault);
      request.countMore?.(message.length - 1);
      return serveBatch(request, sink, async (part, partSink) => {
        const partMessage = JSON.parse(part.text) as RpcHead;
        if (partMessage.method === 'initialize') refuse(partSink, invalid('initialize must not be part of a batch'));
        else await this.serveMessage(channel, part, partMessage, partSink);
      });
    }
    if (!isObject(message) || !classified) return refuse(sink, invalid('The body must be one JSON-RPC message'));
    await this.serveMessage(channel, request, message, sink, classified);
  }

  private async serveMessage(
    channel: Channel | McpRefusal,
    request: McpRequestContext,
    message: RpcHead,
    sink: McpResponseSink,
    classified = classify(message, request.headers),
  ): Promise<void> {
    const fault = shapeFault(message);
    if (fault) return refuse(sink, fault, idOf(message, request.text));
    if (classified.era === null) return refuse(sink, classified.fault, idOf(message, request.text));
    const { method } = message;
    request.observer?.received(typeof method === 'string' ? method : null, message.params);
    request.origin.client = request.session?.client ?? clientNameIn(message.params);
    if (typeof method !== 'string') {
      this.pendingClientRequests.deliverResponse(request.session, message, request.text);
      return sink.reply(202, null);
    }
    if (message.id === undefined) {
      // In the revision without sessions a client cancels by disconnecting.
      if (classified.era === 'legacy') this.notified(request, message, method);
      return sink.reply(202, null);
    }
    const parts = uniqueMembers(request.text);
    if (typeof parts === 'string') return refuse(sink, invalid(`"${parts}" occurs twice`));
    const id = slice(request.text, parts.get('id') as Span);
    const params = message.params === null ? undefined : parts.get('params');
    const text = params && slice(request.text, params);
    // Some clients write a `_meta` of null for an absent one; it is not forwarded.
    const isNullMeta = isObject(message.params) && message.params._meta === null;
    const paramsText = text && isNullMeta ? withoutMembers(text, (name) => name === '_meta') : text;
    try {
      if (channel instanceof McpRefusal) throw channel;
      const incoming = { channel, method, params: message.params ?? undefined, paramsText, id, request, sink };
      // The response to `initialize` carries the session id as a header.
      if (request.acceptsStream && method !== 'initialize') sink.openWhenLate();
      if (classified.era === 'modern' && classified.envelope)
        await this.modernServer.handleRequest(incoming, classified.envelope);
      else await this.legacyServer.handleRequest(incoming);
    } catch (error) {
      request.observer?.failed(error as Error);
      const { era } = classified;
      const { account: accountId, principal: keyId, grant, scopes, loginsEpoch } = request;
      const reported =
        error instanceof DomainError ? error.forReader({ accountId, keyId, grant, scopes, loginsEpoch }) : error;
      const text = opensPages(classified, request, message)
        ? await elicitingFailureText(id, method, reported, era)
        : failureText(id, method, reported, era);
      if (era === 'legacy' && error instanceof CallerLeftError) return sink.cancelled(text);
      sink.reply(error instanceof McpRefusal ? statusOf[error.kind] : 200, text);
    }
  }

  /** Notifications about a session and its calls are for Slipway, others for its server. */
  private notified(request: McpRequestContext, message: RpcHead, method: string): void {
    const { session, principal, text } = request;
    if (method === 'notifications/cancelled') {
      const requestId = isObject(message.params) ? message.params.requestId : undefined;
      if (typeof requestId !== 'string' && typeof requestId !== 'number') return;
      const raw = memberText(memberText(text, 'params') ?? '{}', 'requestId');
      if (raw) this.upstreamCalls.cancel(request, raw);
      return;
    }
    if (!session || OWN_NOTIFICATIONS.has(method)) return;
    // Clients without state share an upstream session.
    if (this.liveSessions.eraOf(session, principal) === undefined) return;
    this.liveSessions.notify(session, principal, text);
  }
}

/** Returns true if the client opens pages, which it declares in its session or in the request. */
function opensPages(
  classified: Exclude<Classified, { era: null }>,
  { session }: McpRequestContext,
  { method, params }: RpcHead,
): boolean {
  if (classified.era === 'modern') return takesUrls(classified.envelope?.capabilities ?? {});
  const isBegun = method === 'initialize' && isObject(params);
  return takesPages(
    (isBegun ? capabilityNames(params.capabilities, agreedVersion(params)) : session?.capabilities) ?? [],
  );
}

/** Returns the jSON text of the id of a rejected message; undefined without one that a response can carry. */
function idOf({ id }: RpcHead, text: string): string | undefined {
  return typeof id === 'string' || typeof id === 'number' ? memberText(text, 'id') : undefined;
}

function refuse(sink: McpResponseSink, { status, code, message, data }: Fault, id = 'null'): void {
  sink.reply(status, errorText(id, code, message, data));
}
