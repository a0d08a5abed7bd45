/**
 * Requests of clients of 2025-11-25 and older, which begin with `initialize`, for an upstream of any era.
 *
 * Handled here: `ping`, `initialize` (issues the session id), `logging/setLevel` and `resources/subscribe` (kept in the
 * session). All others go to the upstream. If a modern upstream returns `input_required`, the client receives the
 * requests it can answer, and the call is repeated with its responses, up to 8 rounds and 10 minutes.
 *
 * Methods that the upstream does not declare, and stateful ones without a session, return -32601. A task that a modern
 * upstream starts fails, since this client cannot follow it.
 */
import { Injectable } from '@nestjs/common';
import { Tuning } from '../../config/tuning.js';
import { isObject } from '../../platform/text/json.js';
import type { CallerProfile, McpReply } from '../protocol/channel.js';
import { deadlineFromFirstUse } from '../protocol/deadline.js';
import { slice } from '../protocol/json-text.js';
import { UpstreamFailure } from '../protocol/mcp-errors.js';
import { rpcCode, type UpstreamIdentity } from '../protocol/protocol.js';
import { resultTypeOf } from '../protocol/messages.js';
import {
  replyError,
  replyFailure,
  withOwnError,
  hopError,
  resultText,
  toolFailureText,
  withResult,
  agreedVersion,
  initializeResult,
} from './mcp-responses.js';
import type { McpRequest } from './mcp-request.js';
import { withLogLevel } from './bridge/hop.js';
import { inputRequired, retryParams } from './bridge/input.js';
import { isOlder, legacyError, legacyResult, LINKS_SINCE } from './bridge/to-legacy.js';
import { isLogLevel } from './classify.js';
import { passedCapabilities } from './client-capabilities.js';
import { ClientInput, INPUT_MS_MAX } from './pending-client-requests.js';
import { LiveSessions } from './sessions/live-sessions.js';
import { SessionIds } from './sessions/session-ids.js';
import { TaskRelay, wantsTask, withoutTask } from './tasks/task-relay.js';
import { ToolMetadataCache } from './tool-metadata-cache.js';
import { isLoudMessage, UpstreamCalls, type UpstreamRequestOptions } from './upstream-calls.js';

type Responder = Pick<UpstreamRequestOptions, 'onRequest'> & { profile: CallerProfile };

const NO_TASKS = 'The MCP server has no tasks of MCP 2025-11-25';

const NEWS = /"(?:resource_link|audio|structuredContent|outputSchema)"/;

const SUBSCRIBE_MS = 5_000;

@Injectable()
export class LegacyServer {
  constructor(
    private readonly upstreamCalls: UpstreamCalls,
    private readonly sessionIds: SessionIds,
    private readonly liveSessions: LiveSessions,
    private readonly clientInput: ClientInput,
    private readonly toolMetadataCache: ToolMetadataCache,
    private readonly taskRelay: TaskRelay,
    private readonly tuning: Tuning,
  ) {}

  /** @throws McpRefusal, UpstreamFailure */
  handleRequest(incoming: McpRequest): Promise<void> | void {
    const { method, id, sink } = incoming;
    switch (method) {
      case 'ping':
        return sink.reply(200, resultText(id, '{}'));
      case 'initialize':
        return this.initialize(incoming);
      case 'logging/setLevel':
        return this.setLevel(incoming);
      case 'resources/subscribe':
      case 'resources/unsubscribe':
        return this.subscribe(incoming);
      case 'subscriptions/listen':
        return replyError(incoming, rpcCode.methodNotFound, `${method} needs MCP 2026-07-28`);
      case 'tasks/get':
      case 'tasks/result':
      case 'tasks/list':
      case 'tasks/cancel':
        return this.task(incoming);
      default:
        return this.call(incoming);
    }
  }

  private async task(incoming: McpRequest): Promise<void> {
    const { taskRelay: tasks, clientInput: input } = this;
    if (!(await tasks.isOffered(incoming.channel))) return replyError(incoming, rpcCode.methodNotFound, NO_TASKS);
    if (incoming.method === 'tasks/list') return tasks.list(incoming);
    return tasks.serve(incoming, input.responderFor(incoming, deadlineFromFirstUse(INPUT_MS_MAX)));
  }

  private async initialize({ channel, params, id, sink, request }: McpRequest): Promise<void> {
    const identity = await channel.open(this.tuning.upstreamCallTimeoutMs, 'legacy');
    const version = agreedVersion(params);
    const declared = isObject(params) ? params.capabilities : undefined;
    const minted = this.sessionIds.mint(
      request.caller,
      version,
      passedCapabilities(declared, version),
      request.origin.client,
    );
    sink.reply(200, resultText(id, initializeResult(identity, version)), minted.id);
  }

  private async setLevel(incoming: McpRequest): Promise<void> {
    const { params, id, sink, request } = incoming;
    const level = isObject(params) ? params.level : undefined;
    const can = await this.allows(incoming, ({ logging }) => logging !== undefined);
    if (!request.session || !can) return this.refuse(incoming);
    if (!isLogLevel(level)) return replyError(incoming, rpcCode.invalidParams, 'level must be a log level');
    await this.liveSessions.setLevel(request.session, request.principal, level);
    sink.reply(200, resultText(id, '{}'));
  }

  private async subscribe(incoming: McpRequest): Promise<void> {
    const { method, params, id, sink, request } = incoming;
    const { session, principal } = request;
    const uri = isObject(params) ? params.uri : undefined;
    const can = await this.allows(incoming, ({ resources }) => isObject(resources) && resources.subscribe === true);
    if (!session || !can) return this.refuse(incoming);
    if (typeof uri !== 'string') return replyError(incoming, rpcCode.invalidParams, 'uri must be a string');
    const { liveSessions: sessions } = this;
    if (method === 'resources/unsubscribe') {
      sessions.unsubscribe(session, principal, uri);
      return sink.reply(200, resultText(id, '{}'));
    }
    const refused = await this.trySubscription(incoming, uri);
    if (refused) return sink.reply(200, withOwnError(refused, id, refused.error && hopError(refused.error)));
    if (!(await sessions.subscribe(session, principal, uri))) {
      return replyError(incoming, rpcCode.internalError, 'The session has too many subscriptions');
    }
    sink.reply(200, resultText(id, '{}'));
  }

  /**
   * Returns the error with which the server rejects updates of a resource; null if it sends them, or fails otherwise.
   */
  private async trySubscription({ channel }: McpRequest, uri: string): Promise<McpReply | null> {
    const silent = { onNotification: () => undefined, onEnd: () => undefined };
    const timeoutMs = SUBSCRIBE_MS;
    try {
      const listening = await channel.listen({ resourceSubscriptions: [uri] }, silent, { timeoutMs, era: 'legacy' });
      void listening.close();
      if (listening.honoured.resourceSubscriptions?.includes(uri)) return null;
      const params = JSON.stringify({ uri });
      const reply = await channel.request({ method: 'resources/subscribe', params, timeoutMs, era: 'legacy' });
      return reply.error && reply;
    } catch (error) {
      if (error instanceof UpstreamFailure) return null;
      throw error;
    }
  }

  /** Returns true if the upstream supports a feature. False without a session, since nothing needs to be opened. */
  private async allows(
    { channel, request }: McpRequest,
    offers: (capabilities: UpstreamIdentity['capabilities']) => boolean,
  ): Promise<boolean> {
    return (
      request.session !== null && offers((await channel.open(this.tuning.upstreamCallTimeoutMs, 'legacy')).capabilities)
    );
  }

  private refuse(incoming: McpRequest): void {
    const { method, request } = incoming;
    const prefix = request.session ? 'The MCP server has no' : 'Without a session of this endpoint there is no';
    replyError(incoming, rpcCode.methodNotFound, `${prefix} ${method}`);
  }

  private async call(incoming: McpRequest): Promise<void> {
    const { request, sink, channel } = incoming;
    const isTask = wantsTask(incoming);
    if (isTask && !(await this.taskRelay.isOffered(channel))) {
      // A receiver that declares no tasks ignores the member (MCP 2025-11-25, tasks).
      return this.call(withoutTask(incoming));
    }
    const { clientInput: input } = this;
    const { session, principal } = request;
    const level = session && this.liveSessions.level(session, principal);
    const accepts = (method: string, text: string) =>
      level === null || method !== 'notifications/message' || isLoudMessage(text, level);
    const isModern =
      level !== null && (await channel.open(this.tuning.upstreamCallTimeoutMs, 'legacy')).era === 'modern';
    const params = isModern ? withLogLevel(incoming.paramsText, level) : incoming.paramsText;
    const timeLeft = deadlineFromFirstUse(INPUT_MS_MAX);
    const ownSession = this.ownSession(incoming, level, input.responderFor(incoming, timeLeft));
    // The session of a task must stay open while no call runs in it, unlike a shared one.
    const responder = ownSession ?? (session?.shared && !isTask ? { profile: session.shared } : null);
    const era = isTask ? 'legacy' : session ? this.liveSessions.eraOf(session, principal) : undefined;
    let next = params;
    for (let round = 0; ; round += 1) {
      const reply = await this.upstreamCalls.send(incoming, {
        params: next,
        accepts,
        era,
        session: isTask ? '' : undefined,
        profile: responder?.profile,
        onRequest: responder?.onRequest,
      });
      if (isTask) return sink.reply(200, await this.taskRelay.registerTask(incoming, reply));
      if (reply.era === 'legacy') return this.passOn(incoming, reply);
      const required = reply.result && inputRequired(slice(reply.text, reply.result));
      if (!required) return this.complete(incoming, reply);
      const unanswerable = input.unanswerable(incoming, required, round);
      if (unanswerable) return replyFailure(incoming, unanswerable, 'legacy');
      const answers = await input.collect(incoming, required, timeLeft);
      if (request.cancellation.isCancelled) return;
      next = retryParams(params, required, answers);
    }
  }

  private ownSession(
    { channel, request: { session, principal } }: McpRequest,
    level: string | null,
    responder: Responder | null,
  ): Responder | null {
    if (!session || level === null) return responder;
    this.liveSessions.uses(session, principal, channel);
    const profile = responder?.profile ?? this.clientInput.profileOf(session, principal);
    if (!responder) profile.mayShare = true;
    profile.level = level;
    return { profile, onRequest: responder?.onRequest };
  }

  /** Forwards a reply to a client, whose revision can be even older than the server's. */
  private passOn({ method, id, request, sink }: McpRequest, reply: McpReply): void {
    const version = request.session?.version ?? request.headers.version ?? null;
    if (reply.error || !isOlder(version, LINKS_SINCE) || !NEWS.test(reply.text)) {
      return sink.reply(200, withOwnError(reply, id, reply.error && hopError(reply.error)));
    }
    sink.reply(
      200,
      withResult(reply, id, (result) => legacyResult(result, { method, version, isWrapped: false })),
    );
  }

  /** Rejects task results, since these revisions have no client capability for them. */
  private complete(incoming: McpRequest, reply: McpReply): void {
    const { channel, method, params, id, request, sink } = incoming;
    const { error } = reply;
    if (reply.text.includes('"task"') && resultTypeOf(reply) === 'task') {
      return replyFailure(incoming, 'The MCP server answered with a task, which this client cannot follow', 'legacy');
    }
    if (error && method === 'tools/call' && error.code === rpcCode.missingCapability) {
      const required = isObject(error.data) ? error.data.requiredCapabilities : undefined;
      const names = isObject(required) && Object.keys(required).slice(0, 10).join(', ').slice(0, 200);
      const text = `The tool needs what this client did not offer: ${names || 'a client capability'}.`;
      return sink.reply(200, toolFailureText(id, text, 'legacy'));
    }
    if (error) return sink.reply(200, withOwnError(reply, id, hopError(error) ?? legacyError(method, error)));
    if (method === 'tools/list') this.toolMetadataCache.learnTools(channel, reply);
    const name = method === 'tools/call' && isObject(params) ? params.name : undefined;
    const reader = {
      method,
      version: request.session?.version ?? request.headers.version ?? null,
      isWrapped: name !== undefined && this.toolMetadataCache.isWrapped(channel, name),
    };
    sink.reply(
      200,
      withResult(reply, id, (result) => legacyResult(result, reader)),
    );
  }
}
