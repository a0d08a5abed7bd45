import { isObject } from '../../platform/text/json.js';
import type { CallerProfile, McpReply, RpcError } from '../protocol/channel.js';
import { UpstreamAuthRequiredError, UpstreamError } from '../protocol/mcp-errors.js';
import { rpcCode, type Era } from '../protocol/protocol.js';
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
import { paramFault } from './bridge/header-params.js';
import { paramsForLegacy, paramsForModern } from './bridge/hop.js';
import { mayAsk } from './bridge/input.js';
import { isOfRequest, modernError, modernResult, namesDemanded } from './bridge/to-modern.js';
import {
  inputOfSetup,
  inputOfUrlError,
  isDeclined,
  originalParams,
  takesUrls,
  urlCapability,
  withoutSetupAnswer,
} from './bridge/url-elicitation.js';
import type { Envelope } from './classify.js';
import { discoverResult } from './initialize-result.js';
import type { PendingInputCalls } from './pending-input/pending-input-calls.js';
import { foreign, isRequestState, StateRefusedError } from './pending-input/request-state.js';
import type { Subscriptions } from './sessions/subscriptions.js';
import type { ToolNotes } from './tool-notes.js';
import { isLoudMessage, type UpstreamCalls } from './upstream-calls.js';

/** Requests of older revisions that this one does not have. */
const removed: ReadonlySet<string> = new Set([
  'initialize',
  'ping',
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
  'tasks/list',
  'tasks/result',
]);

/** Of the extension of this revision; servers of older ones mean something else by these names. */
const tasks: ReadonlySet<string> = new Set(['tasks/get', 'tasks/update', 'tasks/cancel']);

/** What a modern client's requests need besides their channel. */
export interface ModernParts {
  calls: UpstreamCalls;
  parked: PendingInputCalls;
  subscriptions: Subscriptions;
  notes: ToolNotes;
  timeoutMs: number;
}

/** Answers requests of 2026-07-28, whatever the upstream speaks. */
export class ModernServer {
  constructor(private readonly parts: ModernParts) {}

  /** @throws McpRefusal, UpstreamFailure */
  async answer(asked: McpRequest, envelope: Envelope): Promise<void> {
    const { method, id, sink, channel } = asked;
    if (removed.has(method)) {
      return sink.reply(404, errorText(id, rpcCode.methodNotFound, `MCP 2026-07-28 has no ${method}`));
    }
    if (method === 'server/discover') {
      const hello = await channel.open(this.parts.timeoutMs);
      return sink.reply(200, resultText(id, discoverResult(hello)));
    }
    if (method === 'subscriptions/listen') return this.parts.subscriptions.serve(asked);
    return this.call(asked, envelope);
  }

  private async call(asked: McpRequest, envelope: Envelope): Promise<void> {
    const { method, id, sink, request, channel } = asked;
    if (tasks.has(method) && (await channel.open(this.parts.timeoutMs)).era === 'legacy') {
      return sink.reply(404, errorText(id, rpcCode.methodNotFound, 'The MCP server has no tasks of MCP 2026-07-28'));
    }
    const fault = this.headerFault(asked);
    if (fault) return sink.reply(fault.status, errorText(id, fault.code, fault.message));
    let reply: McpReply | null;
    try {
      const ticket = mayAsk.has(method) ? this.parts.parked.ticketIn(asked) : null;
      reply = ticket ? await this.parts.parked.resume(asked, ticket) : await this.begin(asked, envelope);
      if (reply === null) return this.declined(asked);
    } catch (error) {
      if (error instanceof StateRefusedError) return this.refused(asked, error);
      const led = this.leadToSetup(asked, envelope, error);
      if (led === null) throw error;
      request.watch?.failed(error as Error);
      return sink.reply(200, resultText(id, led));
    }
    if (method === 'tools/list') this.parts.notes.learn(channel, reply);
    if (reply.error) return this.failed(asked, envelope, reply, reply.error);
    if (reply.era === 'modern' && namesDemanded(method, reply.text)) return sink.reply(200, withId(reply, id));
    sink.reply(
      200,
      withResult(reply, id, (result) => modernResult(method, result)),
    );
  }

  /** Sends a call. @returns null when its user declined to do what it needs */
  private async begin(asked: McpRequest, envelope: Envelope): Promise<McpReply | null> {
    const { calls, parked } = this.parts;
    const { era, ...onward } = await this.onward(asked, envelope);
    const { method, params } = asked;
    if (isDeclined(params, era === 'legacy' ? () => true : undefined)) return null;
    const { capabilities } = envelope;
    const place = mayAsk.has(method) ? parked.place(asked, capabilities) : null;
    return place ? parked.begin(asked, { ...onward, ...place, capabilities }, calls) : calls.ask(asked, onward);
  }

  private headerFault({ channel, method, params, request }: McpRequest) {
    if (method !== 'tools/call' || !isObject(params)) return null;
    const declared = this.parts.notes.headerParams(channel, params.name);
    return declared.length === 0 ? null : paramFault(declared, params.arguments, (name) => request.header(name));
  }

  /**
   * What goes to the upstream. Its era is looked at only where it matters, and before a client is named that can be asked
   * back: for a legacy upstream that opens a session of its own, which only calls need whose client can be asked.
   *
   * @throws StateRefusedError
   */
  private async onward({ channel, own = '{}', params, request }: McpRequest, { capabilities, logLevel }: Envelope) {
    const hears = (method: string, text: string) =>
      method === 'notifications/message' ? logLevel !== null && isLoudMessage(text, logLevel) : isOfRequest(method);
    const declares = Object.keys(capabilities).length > 0;
    const isRetry = isObject(params) && ('inputResponses' in params || 'requestState' in params);
    const era: Era | null =
      declares || isRetry || logLevel !== null ? (await channel.open(this.parts.timeoutMs)).era : null;
    if (era === 'legacy') {
      // A server of this era gives no states, so one in our form is ours, and of no use any more.
      if (isRetry && isRequestState(params)) throw foreign();
      return { era, hears, params: paramsForLegacy(isRetry ? originalParams(own) : own) };
    }
    const forModern = paramsForModern(isRetry ? withoutSetupAnswer(own) : own);
    const profile: CallerProfile = { key: request.caller, capabilities };
    return { era, hears, params: forModern, ...(declares ? { profile } : {}) };
  }

  private refused({ method, id, sink, request }: McpRequest, { message, isLost }: StateRefusedError): void {
    request.watch?.failed(new UpstreamError(message));
    if (isLost && method === 'tools/call') return sink.reply(200, toolFailure(id, message, 'modern'));
    sink.reply(200, errorText(id, isLost ? rpcCode.internalError : rpcCode.invalidParams, message));
  }

  /** The user refused to go to the page without which the call leads nowhere. */
  private declined({ method, id, sink }: McpRequest): void {
    const why = 'The call was not carried out: its user declined to open the page it needs.';
    sink.reply(
      200,
      method === 'tools/call' ? toolFailure(id, why, 'modern') : errorText(id, rpcCode.internalError, why),
    );
  }

  /** The input a call asks for instead of failing, when its upstream wants authorization that a page of ours leads to. */
  private leadToSetup({ method }: McpRequest, { capabilities }: Envelope, error: unknown): string | null {
    if (!(error instanceof UpstreamAuthRequiredError) || error.setupUrl === undefined) return null;
    return mayAsk.has(method) && takesUrls(capabilities) ? inputOfSetup(setupSentence(error), error.setupUrl) : null;
  }

  private failed(asked: McpRequest, { capabilities }: Envelope, reply: McpReply, error: RpcError): void {
    const { method, params, id, sink } = asked;
    if (error.code === rpcCode.missingCapability && reply.era === 'modern') {
      const lacking = lackingOf(error, capabilities);
      if (lacking) return sink.reply(400, rpcErrorText(id, lacking));
    }
    if (reply.era === 'legacy') {
      const input = mayAsk.has(method) ? inputOfUrlError(error) : null;
      if (input && takesUrls(capabilities)) return sink.reply(200, resultText(id, input));
      if (input) {
        const data = { requiredCapabilities: urlCapability };
        return sink.reply(400, errorText(id, rpcCode.missingCapability, error.message, data));
      }
    }
    const changed = hopError(error) ?? (reply.era === 'legacy' ? modernError(method, error, params) : null);
    const status = error.code === rpcCode.methodNotFound ? 404 : 200;
    sink.reply(status, changed ? rpcErrorText(id, changed) : withId(reply, id));
  }
}

/** A modern upstream's demand for capabilities, which is one on the client if it did not declare them all; else null. */
function lackingOf({ message, data }: RpcError, declared: Record<string, unknown>): RpcError | null {
  const required = isObject(data) ? data.requiredCapabilities : undefined;
  if (!isObject(required) || !lacks(declared, required)) return null;
  return { code: rpcCode.missingCapability, message, data: { requiredCapabilities: required } };
}

function lacks(declared: Record<string, unknown>, required: Record<string, unknown>): boolean {
  return Object.entries(required).some(([name, wanted]) => {
    const has = declared[name];
    return has === undefined || (isObject(has) && isObject(wanted) && lacks(has, wanted));
  });
}
