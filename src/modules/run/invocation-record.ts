import { Injectable } from '@nestjs/common';
import { InvocationsService } from '../logs/ingest/invocations.service.js';
import { ToolOutputsService } from '../tool-schemas/tool-outputs.service.js';
import type { CallOrigin, McpReply } from '../../mcp/protocol/channel.js';
import { memberText } from '../../mcp/protocol/json-edit.js';
import { slice } from '../../mcp/protocol/json-text.js';
import { isErrorResult } from '../../mcp/protocol/messages.js';
import { failureOf } from '../../mcp/protocol/failures.js';
import { UpstreamFailure } from '../../mcp/protocol/mcp-errors.js';
import { redactedJson, redactText } from '../../platform/telemetry/redact-payload.js';
import { isObject } from '../../platform/text/json.js';
import { hostedFailureIn } from '../../hosting/hosting.errors.js';
import type { Invocation, InvocationOutcome } from '../logs/invocation.types.js';
import { RequestRecord } from '../../mcp/server/mcp-request.js';

const PAYLOAD_BYTES_MAX = 16 * 1024;

/** Maximum length of a result that is parsed again. */
const RESULT_CHARS_MAX = 64 * 1024;

/** Maximum length of an error's message, unless the owner of the server enabled payloads: it might repeat arguments. */
const ERROR_CHARS_MAX = 200;

/** Requests whose arguments and result are a payload; other requests only list a server's offers. */
const WITH_PAYLOAD = new Set(['tools/call', 'prompts/get', 'resources/read', 'completion/complete']);

export interface InvocationRecordOptions {
  /** True to record arguments and results. */
  keepsPayload?: boolean;
  isPassedThrough?: boolean;
  /** The id of the client's request, if a connection already recorded it. */
  invocationId?: string;
}

export class InvocationRecord extends RequestRecord {
  private params: unknown;
  private reply: McpReply | null = null;
  /** The result of the called tool as JSON; null if it failed or no tool was called. */
  output: { tool: string; result: string } | null = null;
  /** Null if the server returned a result. */
  private answeredError: AnsweredError | null = null;
  private isBroken = false;

  constructor(
    origin: CallOrigin | null,
    private readonly options: InvocationRecordOptions = {},
  ) {
    super(origin, options.invocationId);
  }

  recordReply(reply: McpReply): void {
    if (this.hasPayload()) this.reply = reply;
    const { toolName } = this;
    this.answeredError = errorIn(reply, toolName !== null);
    if (this.answeredError || toolName === null || !reply.result) return;
    const output = slice(reply.text, reply.result);
    const type = output.includes('"resultType"') ? memberText(output, 'resultType') : undefined;
    if (type === undefined || type === '"complete"') this.output = { tool: toolName, result: output };
  }

  override received(method: string | null, params: unknown): void {
    super.received(method, params);
    if (this.hasPayload()) this.params = params;
  }

  /** Marks an interrupted response, whose status does not show the outcome. */
  markBroken(error: Error): void {
    this.failure = error;
    this.isBroken = true;
  }

  finish(
    { serverId, releaseId }: { serverId: string; releaseId: string | null },
    url: string,
    { method, status }: { method: string; status: number },
  ): Invocation & { outcome: InvocationOutcome; wallMs: number } {
    let thrown: { name: string; message: string } | null = null;
    if (this.failure) {
      // The failure of the upstream behind it: the owner can see where the server runs, its callers cannot.
      const { detail } = this.failure as { detail?: unknown };
      thrown = detail instanceof UpstreamFailure ? detail : this.failure;
    } else if (this.answeredError) {
      const message = redactText(this.answeredError.text);
      const shownMessage = this.options.keepsPayload ? message : message.slice(0, ERROR_CHARS_MAX);
      thrown = { name: this.answeredError.name, message: shownMessage };
    }
    return {
      id: this.invocationId,
      serverId,
      releaseId,
      at: this.at,
      method,
      url,
      rpcMethod: this.rpcMethod,
      toolName: this.toolName,
      caller: this.origin,
      status: this.thrownStatus ?? status,
      outcome: this.outcome(),
      cpuMs: 0,
      wallMs: Math.round(this.elapsedMs),
      lines: [],
      exceptions: thrown ? [{ at: Date.now(), name: thrown.name, message: thrown.message }] : [],
      payload: this.hasPayload()
        ? { arguments: argumentsOf(this.params), result: this.reply && resultOf(this.reply) }
        : undefined,
    };
  }

  private hasPayload(): boolean {
    return this.options.keepsPayload === true && WITH_PAYLOAD.has(this.rpcMethod ?? '');
  }

  private outcome(): InvocationOutcome {
    const outcome = this.failure && failureOf(this.failure).outcome;
    if (outcome === 'canceled') return outcome;
    const hosted = hostedFailureIn(this.failure);
    if (hosted) return hosted.outcome;
    if (this.isBroken) return 'responseStreamDisconnected';
    // A server that rejects the credentials of its release has failed.
    if (outcome) return this.failure instanceof UpstreamFailure ? 'exception' : outcome;
    if (this.answeredError) return this.answeredError.outcome;
    return this.rpcMethod === null && !this.options.isPassedThrough && !this.isResponse ? 'denied' : 'ok';
  }
}

interface AnsweredError {
  outcome: 'toolError' | 'rpcError';
  name: string;
  text: string;
}

function errorIn(reply: McpReply, isToolCall: boolean): AnsweredError | null {
  const { text, result, error } = reply;
  if (error)
    return {
      outcome: 'rpcError',
      name: 'RpcError',
      text: `${error.code}: ${error.message.slice(0, RESULT_CHARS_MAX)}`,
    };
  if (!isToolCall || !result || !isErrorResult(reply)) return null;
  const json = slice(text, result);
  if (json.length > RESULT_CHARS_MAX) {
    return { outcome: 'toolError', name: 'ToolError', text: `[result of ${json.length} characters]` };
  }
  const { content } = JSON.parse(json) as { content?: unknown };
  const parts = Array.isArray(content) ? content.map((item) => (isObject(item) ? item.text : undefined)) : [];
  const errorText = parts.filter((item) => typeof item === 'string').join('\n');
  return { outcome: 'toolError', name: 'ToolError', text: errorText };
}

/** Returns the arguments of a tool or prompt, or the params of other methods. */
function argumentsOf(params: unknown): string | null {
  if (!isObject(params)) return null;
  const { name: _name, _meta, ...rest } = params;
  return redactedJson('name' in params ? params.arguments : rest, PAYLOAD_BYTES_MAX);
}

/** Returns the result, or `{"error": …}`. */
function resultOf({ text, result, error }: McpReply): string | null {
  if (error) return redactedJson({ error }, PAYLOAD_BYTES_MAX);
  if (!result) return null;
  const json = slice(text, result);
  if (json.length > RESULT_CHARS_MAX) return JSON.stringify(`[result of ${json.length} characters]`);
  return redactedJson(JSON.parse(json), PAYLOAD_BYTES_MAX);
}

@Injectable()
export class InvocationRecorder {
  constructor(
    private readonly invocationsService: InvocationsService,
    private readonly toolOutputsService: ToolOutputsService,
  ) {}

  /**
   * @param url the called address
   * @param http method and status of the response
   * @param keepsDenied false: does not store a call that was rejected before it reached the server
   */
  finishRecord(
    record: InvocationRecord,
    server: { serverId: string; releaseId: string | null },
    url: string,
    http: { method: string; status: number },
    keepsDenied: boolean,
  ): ReturnType<InvocationRecord['finish']> {
    const { output } = record;
    if (output) this.toolOutputsService.observe(server.serverId, output.tool, output.result);
    const invocation = record.finish(server, url, http);
    if (keepsDenied || invocation.outcome !== 'denied') this.invocationsService.record(invocation);
    return invocation;
  }
}
