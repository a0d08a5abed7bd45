import { randomUUID } from 'node:crypto';
import { isObject } from '../../platform/text/json.js';
import type { McpReply, RpcError } from '../protocol/channel.js';
import { deadlineIn } from '../protocol/deadline.js';
import { withoutMembers } from '../protocol/json-edit.js';
import { slice } from '../protocol/json-text.js';
import { UpstreamAuthRequiredError } from '../protocol/mcp-errors.js';
import { rpcCode, type UpstreamIdentity } from '../protocol/protocol.js';
import { resultTypeOf } from '../protocol/messages.js';
import {
  errorText,
  hopError,
  resultText,
  rpcErrorText,
  setupSentence,
  toolFailure,
  withId,
  withResult,
} from './mcp-responses.js';
import type { McpRequest } from './mcp-request.js';
import { withLogLevel } from './bridge/hop.js';
import { inputRequired, retryParams } from './bridge/input.js';
import { legacyError, legacyResult } from './bridge/to-legacy.js';
import { setupError } from './bridge/url-elicitation.js';
import { isLogLevel } from './classify.js';
import { askableOf, takesPages } from './client-capabilities.js';
import { INPUT_MS_MAX, type ClientInput } from './client-input.js';
import { agreedVersion, initializeResult } from './initialize-result.js';
import { URI_CHARS_MAX, type LiveSessions } from './sessions/live-sessions.js';
import type { SessionIds } from './sessions/session-ids.js';
import type { ToolNotes } from './tool-notes.js';
import { isLoudMessage, type UpstreamCalls } from './upstream-calls.js';

/** What a legacy client's requests need besides their channel. */
export interface LegacyParts {
  calls: UpstreamCalls;
  ids: SessionIds;
  sessions: LiveSessions;
  input: ClientInput;
  notes: ToolNotes;
  timeoutMs: number;
}

/** A task would belong to an upstream session that callers share. */
const NO_TASKS = 'Tasks do not pass this endpoint: call the tool without one, and its answer is what the task comes to';

/** Answers requests of revisions that begin with `initialize`, whatever the upstream speaks. */
export class LegacyServer {
  constructor(private readonly parts: LegacyParts) {}

  /** @throws McpRefusal, UpstreamFailure */
  async answer(asked: McpRequest): Promise<void> {
    const { method, id, sink } = asked;
    switch (method) {
      case 'ping':
        return sink.reply(200, resultText(id, '{}'));
      case 'initialize':
        return this.initialize(asked);
      case 'logging/setLevel':
        return this.setLevel(asked);
      case 'resources/subscribe':
      case 'resources/unsubscribe':
        return this.subscribe(asked);
      case 'subscriptions/listen':
        return sink.reply(200, errorText(id, rpcCode.methodNotFound, `${method} needs MCP 2026-07-28`));
      case 'tasks/get':
      case 'tasks/result':
      case 'tasks/list':
      case 'tasks/cancel':
        return sink.reply(200, errorText(id, rpcCode.methodNotFound, NO_TASKS));
      default:
        return this.call(asked);
    }
  }

  private async initialize({ channel, params, id, sink, request }: McpRequest): Promise<void> {
    const hello = await channel.open(this.parts.timeoutMs);
    const version = agreedVersion(params);
    const declared = isObject(params) ? params.capabilities : undefined;
    const minted = this.parts.ids.mint(request.caller, version, askableOf(declared, version));
    sink.reply(200, resultText(id, initializeResult(hello, version)), { 'mcp-session-id': minted.id });
  }

  private async setLevel(asked: McpRequest): Promise<void> {
    const { params, id, sink, request } = asked;
    const level = isObject(params) ? params.level : undefined;
    const can = await this.can(asked, ({ logging }) => logging !== undefined);
    if (!request.session || !can) return this.refuse(asked);
    if (!isLogLevel(level)) return sink.reply(200, errorText(id, rpcCode.invalidParams, 'level must be a log level'));
    this.parts.sessions.setLevel(request.session, request.principal, level);
    sink.reply(200, resultText(id, '{}'));
  }

  private async subscribe(asked: McpRequest): Promise<void> {
    const { method, params, id, sink, request } = asked;
    const { session, principal } = request;
    const uri = isObject(params) ? params.uri : undefined;
    const can = await this.can(asked, ({ resources }) => isObject(resources) && resources.subscribe === true);
    if (!session || !can) return this.refuse(asked);
    if (typeof uri !== 'string' || uri.length > URI_CHARS_MAX) {
      const why = `uri must be a string of at most ${URI_CHARS_MAX} characters`;
      return sink.reply(200, errorText(id, rpcCode.invalidParams, why));
    }
    const { sessions } = this.parts;
    if (method === 'resources/unsubscribe') sessions.unsubscribe(session, principal, uri);
    else if (!sessions.subscribe(session, principal, uri)) {
      return sink.reply(200, errorText(id, rpcCode.internalError, 'The session has too many subscriptions'));
    }
    sink.reply(200, resultText(id, '{}'));
  }

  /** Without a session there is nothing to open for. */
  private async can(
    { channel, request }: McpRequest,
    offers: (capabilities: UpstreamIdentity['capabilities']) => boolean,
  ): Promise<boolean> {
    return request.session !== null && offers((await channel.open(this.parts.timeoutMs)).capabilities);
  }

  private refuse({ method, id, sink, request }: McpRequest): void {
    const why = request.session ? 'The MCP server has no' : 'Without a session of this endpoint there is no';
    sink.reply(200, errorText(id, rpcCode.methodNotFound, `${why} ${method}`));
  }

  private async call(asked: McpRequest): Promise<void> {
    const { request, sink, id, channel } = asked;
    const { input } = this.parts;
    const level = this.levelOf(asked);
    const hears = (method: string, text: string) =>
      level === null || method !== 'notifications/message' || isLoudMessage(text, level);
    const isModern = level !== null && (await channel.open(this.parts.timeoutMs)).era === 'modern';
    const plain = withoutTask(asked);
    const params = isModern ? withLogLevel(plain, level) : plain;
    const left = deadlineIn(INPUT_MS_MAX);
    const asking = input.asking(asked, left);
    let next = params;
    for (let round = 0; ; round += 1) {
      const reply = await this.askUpstream(asked, { params: next, hears, ...asking });
      if (!reply) return;
      if (reply.era === 'legacy') return sink.reply(200, this.same(reply, id));
      const wanted = reply.result && inputRequired(slice(reply.text, reply.result));
      if (!wanted) return this.complete(asked, reply);
      const unanswerable = input.unanswerable(asked, wanted, round);
      if (unanswerable) return this.giveUp(asked, unanswerable);
      const answers = await input.collect(asked, wanted, left);
      if (request.cancellation.isCancelled) return;
      next = retryParams(params, wanted, answers);
    }
  }

  /** The upstream's answer, or null when it wants authorization and the client was sent to where it is given. */
  private async askUpstream(asked: McpRequest, onward: Parameters<UpstreamCalls['ask']>[1]): Promise<McpReply | null> {
    try {
      return await this.parts.calls.ask(asked, onward);
    } catch (error) {
      const { session, watch } = asked.request;
      const isLed = session !== null && takesPages(session.askable);
      if (!(error instanceof UpstreamAuthRequiredError) || error.setupUrl === undefined || !isLed) throw error;
      watch?.failed(error);
      const led = setupError(setupSentence(error), error.setupUrl, randomUUID());
      asked.sink.reply(200, rpcErrorText(asked.id, led));
      return null;
    }
  }

  private levelOf({ request: { session, principal } }: McpRequest): string | null {
    return session && this.parts.sessions.level(session, principal);
  }

  /** A legacy upstream's answer: as it is, unless it is about our hop. */
  private same(reply: McpReply, id: string): string {
    const hop = reply.error && hopError(reply.error);
    return hop ? rpcErrorText(id, hop) : withId(reply, id);
  }

  /** A task is an answer only to those who declare that they take them, which no client of these revisions can. */
  private complete(asked: McpRequest, reply: McpReply): void {
    const isTask = reply.text.includes('"task"') && resultTypeOf(reply) === 'task';
    if (isTask) return this.giveUp(asked, 'The MCP server answered with a task, which this client cannot follow');
    asked.sink.reply(200, this.translated(asked, reply));
  }

  private translated(asked: McpRequest, reply: McpReply): string {
    const { channel, method, params, id, request } = asked;
    if (reply.error) return this.translatedError(asked, reply, reply.error);
    if (method === 'tools/list') this.parts.notes.learn(channel, reply);
    const name = method === 'tools/call' && isObject(params) ? params.name : undefined;
    const reader = {
      method,
      version: request.session?.version ?? request.headers.version ?? null,
      isWrapped: name !== undefined && this.parts.notes.isWrapped(channel, name),
    };
    return withResult(reply, id, (result) => legacyResult(result, reader));
  }

  private translatedError({ method, id }: McpRequest, reply: McpReply, error: RpcError): string {
    if (method === 'tools/call' && error.code === rpcCode.missingCapability) {
      return toolFailure(id, `The tool needs what this client did not offer: ${neededBy(error)}.`, 'legacy');
    }
    const changed = hopError(error) ?? legacyError(method, error);
    return changed ? rpcErrorText(id, changed) : withId(reply, id);
  }

  private giveUp({ method, id, sink }: McpRequest, why: string): void {
    sink.reply(
      200,
      method === 'tools/call' ? toolFailure(id, why, 'legacy') : errorText(id, rpcCode.internalError, why),
    );
  }
}

/** Who does not declare tasks takes no notice of one that is asked for (MCP 2025-11-25, tasks). */
function withoutTask({ own, params }: McpRequest): string | undefined {
  const wantsTask = isObject(params) && 'task' in params;
  return own !== undefined && wantsTask ? withoutMembers(own, (name) => name === 'task') : own;
}

function neededBy({ data }: RpcError): string {
  const required = isObject(data) ? data.requiredCapabilities : undefined;
  return isObject(required) ? Object.keys(required).slice(0, 10).join(', ').slice(0, 200) : 'a client capability';
}
