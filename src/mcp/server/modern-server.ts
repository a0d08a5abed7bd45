/**
 * Requests of clients of 2026-07-28, which have no session, for an upstream of any era.
 *
 * Handled here: `server/discover` and `subscriptions/listen`; methods that the revision removed get 404 with -32601.
 * All others go to the upstream. If a legacy upstream sends requests to its client during a call, the call returns
 * `input_required` with a `requestState`, stays open, and continues when the client repeats it with `inputResponses`
 * (`pending-input/`).
 *
 * The upstream's era is read only where the response depends on it, since it costs a dial. Errors: headers that
 * contradict marked arguments, a changed or expired state, tasks at an upstream without them, and a capability that the
 * client did not declare (400 with the names).
 */
import { Injectable } from '@nestjs/common';
import { Tuning } from '../../config/tuning.js';
import { isObject } from '../../platform/text/json.js';
import type { CallerProfile, McpReply, RpcError } from '../protocol/channel.js';
import { UpstreamError, withPages } from '../protocol/mcp-errors.js';
import { isList } from '../protocol/list-pages.js';
import { extrasOf, sharedProfile } from '../protocol/session.js';
import { rpcCode, type Era } from '../protocol/protocol.js';
import {
  replyError,
  replyFailure,
  withOwnError,
  hopError,
  resultText,
  withId,
  withResult,
  discoverResult,
} from './mcp-responses.js';
import type { McpRequest } from './mcp-request.js';
import { paramFault } from './bridge/header-params.js';
import { paramsForLegacy, paramsForModern } from './bridge/hop.js';
import {
  mayRequireInput,
  inputOfUrlError,
  isDeclined,
  withoutAnswers,
  takesUrls,
  urlCapability,
  withoutSetupAnswer,
} from './bridge/input.js';
import { isOfRequest, modernError, modernResult, namesDemanded } from './bridge/to-modern.js';
import type { Envelope } from './classify.js';
import { PendingInputCalls } from './pending-input/pending-input-calls.js';
import { foreign, isRequestState, StateRefusedError } from './pending-input/pending-input-call.js';
import { Subscriptions } from './sessions/subscriptions.js';
import { wantsTask, withoutTask } from './tasks/task-relay.js';
import { ToolMetadataCache } from './tool-metadata-cache.js';
import { isLoudMessage, UpstreamCalls, type UpstreamRequestOptions } from './upstream-calls.js';

const removed: ReadonlySet<string> = new Set([
  'initialize',
  'ping',
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
  'tasks/list',
  'tasks/result',
]);

/** Methods of this revision's tasks extension; older servers use these names for something else. */
const tasks: ReadonlySet<string> = new Set(['tasks/get', 'tasks/update', 'tasks/cancel']);

const DECLINED = 'The call was not carried out: its user declined to open the page it needs.';

@Injectable()
export class ModernServer {
  constructor(
    private readonly upstreamCalls: UpstreamCalls,
    private readonly pendingInputCalls: PendingInputCalls,
    private readonly subscriptions: Subscriptions,
    private readonly toolMetadataCache: ToolMetadataCache,
    private readonly tuning: Tuning,
  ) {}

  /** @throws McpRefusal, UpstreamFailure */
  async handleRequest(incoming: McpRequest, envelope: Envelope): Promise<void> {
    const { method, id, sink, channel } = incoming;
    if (removed.has(method)) {
      return replyError(incoming, rpcCode.methodNotFound, `MCP 2026-07-28 has no ${method}`, 404);
    }
    if (method === 'server/discover') {
      const identity = await channel.open(this.tuning.upstreamCallTimeoutMs);
      return sink.reply(200, resultText(id, discoverResult(identity)));
    }
    if (method === 'subscriptions/listen') {
      return this.subscriptions.serve(
        incoming,
        this.pendingInputCalls.listeningProfile(incoming, envelope.capabilities),
      );
    }
    return this.call(incoming, envelope);
  }

  private async call(incoming: McpRequest, envelope: Envelope): Promise<void> {
    const { method, params, id, sink, channel, request } = incoming;
    if (tasks.has(method) && (await channel.open(this.tuning.upstreamCallTimeoutMs)).era === 'legacy') {
      return replyError(incoming, rpcCode.methodNotFound, 'The MCP server has no tasks of MCP 2026-07-28', 404);
    }
    // The member belongs to 2025-11-25, where a receiver without tasks ignores it. Clients of this revision declare an
    // extension.
    if (wantsTask(incoming) && (await channel.open(this.tuning.upstreamCallTimeoutMs)).era === 'legacy') {
      return this.call(withoutTask(incoming), envelope);
    }
    if (method === 'tools/call' && isObject(params)) {
      const marked = this.toolMetadataCache.headerParams(channel, params.name);
      const fault = marked.length === 0 ? null : paramFault(marked, params.arguments, (name) => request.header(name));
      if (fault) return replyError(incoming, fault.code, fault.message, fault.status);
    }
    let reply: McpReply | null;
    try {
      const state = mayRequireInput.has(method) ? this.pendingInputCalls.stateOf(incoming) : null;
      reply = state ? await this.pendingInputCalls.resume(incoming, state) : await this.begin(incoming, envelope);
      if (reply === null) return replyFailure(incoming, DECLINED, 'modern');
    } catch (error) {
      if (!(error instanceof StateRefusedError)) throw error;
      request.observer?.failed(new UpstreamError(error.message));
      if (error.isLost) return replyFailure(incoming, error.message, 'modern');
      return replyError(incoming, rpcCode.invalidParams, error.message);
    }
    if (method === 'tools/list') this.toolMetadataCache.learnTools(channel, reply);
    if (reply.error) return this.failed(incoming, envelope, reply, reply.error);
    if (reply.era === 'modern' && namesDemanded(method, reply.text)) return sink.reply(200, withId(reply, id));
    sink.reply(
      200,
      withResult(reply, id, (result) => modernResult(method, result, reply.era)),
    );
  }

  /** @returns null when the user declined a page that the call requires */
  private async begin(incoming: McpRequest, envelope: Envelope): Promise<McpReply | null> {
    const { upstreamCalls: calls, pendingInputCalls: pending } = this;
    const { era, options } = await this.optionsFor(incoming, envelope);
    const { method, params } = incoming;
    if (isDeclined(params, era === 'legacy' ? () => true : undefined)) return null;
    const { capabilities } = envelope;
    const slot = mayRequireInput.has(method) ? pending.allocate(incoming, capabilities) : null;
    return slot ? pending.begin(incoming, options, slot, capabilities, calls) : calls.send(incoming, options);
  }

  /**
   * Reads the upstream's era only where needed and before naming a caller profile: a profile opens a separate session
   * at a legacy upstream, needed only for clients that can handle requests.
   *
   * @throws StateRefusedError
   */
  private async optionsFor(
    { channel, method, paramsText = '{}', params, request }: McpRequest,
    { capabilities, logLevel }: Envelope,
  ): Promise<{ era: Era | null; options: UpstreamRequestOptions }> {
    const accepts = (method: string, text: string) =>
      method === 'notifications/message' ? logLevel !== null && isLoudMessage(text, logLevel) : isOfRequest(method);
    const declares = Object.keys(capabilities).length > 0;
    const isRetry = isObject(params) && ('inputResponses' in params || 'requestState' in params);
    const era: Era | null =
      declares || isRetry || logLevel !== null ? (await channel.open(this.tuning.upstreamCallTimeoutMs)).era : null;
    if (era === 'legacy') {
      // An upstream of this era does not issue states in Slipway's form: this one is Slipway's and has expired.
      if (isRetry && isRequestState(params)) throw foreign();
      const legacyParams = paramsForLegacy(isRetry ? withoutAnswers(paramsText) : paramsText);
      // A server might list a tool only to clients that can handle requests, or that know an extension.
      const profile = sharedProfile(era, isList(method) ? capabilities : extrasOf(capabilities));
      return { era, options: { accepts, params: legacyParams, profile } };
    }
    const forModern = paramsForModern(isRetry ? withoutSetupAnswer(paramsText) : paramsText);
    const profile: CallerProfile | undefined = declares ? { key: request.caller, capabilities } : undefined;
    return { era, options: { accepts, params: forModern, profile } };
  }

  private failed(incoming: McpRequest, { capabilities }: Envelope, reply: McpReply, error: RpcError): void {
    const { method, params, id, sink } = incoming;
    const { requiredCapabilities: required, elicitations } = isObject(error.data) ? error.data : {};
    const incapable = (requiredCapabilities: object) =>
      replyError(incoming, rpcCode.missingCapability, withPages(error.message, elicitations), 400, {
        requiredCapabilities,
        elicitations,
      });
    if (error.code === rpcCode.missingCapability && reply.era === 'modern') {
      if (isObject(required) && isLacking(capabilities, required)) return incapable(required);
    }
    if (reply.era === 'legacy') {
      const input = mayRequireInput.has(method) ? inputOfUrlError(error) : null;
      if (input && takesUrls(capabilities)) return sink.reply(200, resultText(id, input));
      if (input) return incapable(urlCapability);
    }
    const changed = hopError(error) ?? (reply.era === 'legacy' ? modernError(method, error, params) : null);
    const status = error.code === rpcCode.methodNotFound ? 404 : 200;
    sink.reply(status, withOwnError(reply, id, changed));
  }
}

function isLacking(declared: Record<string, unknown>, required: Record<string, unknown>): boolean {
  return Object.entries(required).some(([name, demanded]) => {
    const has = declared[name];
    return has === undefined || (isObject(has) && isObject(demanded) && isLacking(has, demanded));
  });
}
