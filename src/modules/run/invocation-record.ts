import type { McpReply } from '../../mcp/protocol/channel.js';
import type { CallObserver } from '../../mcp/server/mcp-request.js';
import { memberText } from '../../mcp/protocol/json-edit.js';
import { slice } from '../../mcp/protocol/json-text.js';
import { CallerLeftError, UpstreamFailure } from '../../mcp/protocol/mcp-errors.js';
import { domainErrorOf } from '../../platform/errors/error-body.js';
import { DomainError, statusOf } from '../../platform/errors/domain-error.js';
import { redactedJson } from '../../platform/telemetry/redact-payload.js';
import { isObject } from '../../platform/text/json.js';
import { uuidV7 } from '../../platform/database/uuid-v7.js';
import { hostedFailureIn } from '../../hosting/hosting.errors.js';
import type { Invocation, InvocationException, InvocationOutcome } from '../logs/invocation.types.js';

/** How the request came and was answered. */
export interface Answered {
  method: string;
  status: number;
}

/** What is kept of arguments, and of a result, as JSON text. */
const PAYLOAD_BYTES_MAX = 16 * 1024;

/** A longer answer is not read again to be kept. */
const RESULT_CHARS_MAX = 64 * 1024;

/** The requests that carry what a payload is; the others ask what there is. */
const WITH_PAYLOAD = new Set(['tools/call', 'prompts/get', 'resources/read', 'completion/complete']);

/** Gathers what there is to say of one request. Nothing of what was asked and answered is kept unless `keepsPayload`. */
export class InvocationRecord implements CallObserver {
  readonly invocationId = uuidV7();
  private readonly at = new Date();
  private readonly startedAt = performance.now();
  private rpcMethod: string | null = null;
  private toolName: string | null = null;
  /** It is a client's answer to a question of the server's. */
  private isAnswer = false;
  private failure: Error | null = null;
  /** Set when the request is not answered by the front, but by whoever catches what it threw. */
  private thrownStatus: number | null = null;
  private params: unknown;
  private reply: McpReply | null = null;
  /** The answer of the tool that was called, as JSON text; null when it failed or no tool was called. */
  output: { tool: string; result: string } | null = null;
  /** The answer broke off after it had begun. */
  private isBroken = false;

  /** @param isRaw a request of another kind than MCP */
  constructor(
    private readonly keepsPayload = false,
    private readonly isRaw = false,
  ) {}

  answered(reply: McpReply): void {
    if (this.hasPayload()) this.reply = reply;
    const { toolName } = this;
    const { text, result } = reply;
    const output = toolName !== null && result ? slice(text, result) : null;
    if (toolName !== null && output !== null && isOutput(output)) this.output = { tool: toolName, result: output };
  }

  asked(method: string | null, params: unknown): void {
    this.rpcMethod = method;
    this.isAnswer = method === null;
    const name = method === 'tools/call' ? (params as { name?: unknown } | undefined)?.name : undefined;
    this.toolName = typeof name === 'string' ? name : null;
    if (this.hasPayload()) this.params = params;
  }

  failed(error: Error): void {
    this.failure = error;
  }

  /** Its answer broke off, so its status says nothing of that. */
  broke(error: Error): void {
    this.failure = error;
    this.isBroken = true;
  }

  /** It failed before the front answered. */
  threw(error: unknown): void {
    this.failure = error as Error;
    this.thrownStatus = statusOf[domainErrorOf(error)?.kind ?? 'internal'];
  }

  finish(
    server: { serverId: string; releaseId: string | null },
    url: string,
    { method, status }: Answered,
  ): Invocation {
    const failure = this.failure && tellOwner(this.failure);
    return {
      id: this.invocationId,
      ...server,
      at: this.at,
      method,
      url,
      rpcMethod: this.rpcMethod,
      toolName: this.toolName,
      status: this.thrownStatus ?? status,
      outcome: this.outcome(),
      cpuMs: 0,
      wallMs: Math.round(performance.now() - this.startedAt),
      lines: [],
      exceptions: failure ? [{ at: new Date(), ...failure }] : [],
      ...(this.hasPayload() && {
        payload: { arguments: argumentsOf(this.params), result: this.reply && resultOf(this.reply) },
      }),
    };
  }

  private hasPayload(): boolean {
    return this.keepsPayload && WITH_PAYLOAD.has(this.rpcMethod ?? '');
  }

  private outcome(): InvocationOutcome {
    if (this.failure instanceof CallerLeftError) return 'canceled';
    const hosted = hostedFailureIn(this.failure);
    if (hosted) return hosted.outcome;
    if (this.isBroken) return 'responseStreamDisconnected';
    if (this.failure instanceof UpstreamFailure) return 'exception';
    if (this.failure) return this.failure instanceof DomainError ? 'denied' : 'exception';
    return this.rpcMethod === null && !this.isRaw && !this.isAnswer ? 'denied' : 'ok';
  }
}

/** Whether a result of `tools/call` shows what the tool answers: not when it failed, and not when it asks for input. */
function isOutput(result: string): boolean {
  if (result.includes('"isError"') && memberText(result, 'isError') === 'true') return false;
  const type = result.includes('"resultType"') ? memberText(result, 'resultType') : undefined;
  return type === undefined || type === '"complete"';
}

/** Of a tool or prompt its arguments; otherwise all that was asked with. */
function argumentsOf(params: unknown): string | null {
  if (!isObject(params)) return null;
  const { name: _name, _meta, ...rest } = params;
  return redactedJson('name' in params ? params.arguments : rest, PAYLOAD_BYTES_MAX);
}

/** Of an error what it says, as `{"error": …}`. */
function resultOf({ text, result, error }: McpReply): string | null {
  if (error) return redactedJson({ error }, PAYLOAD_BYTES_MAX);
  if (!result) return null;
  const json = slice(text, result);
  if (json.length > RESULT_CHARS_MAX) return JSON.stringify(`[result of ${json.length} characters]`);
  return redactedJson(JSON.parse(json), PAYLOAD_BYTES_MAX);
}

/** The owner may know where the server runs, which its callers are not told. */
function tellOwner(failure: Error): Omit<InvocationException, 'at'> {
  const { name, message } =
    (failure as { detail?: unknown }).detail instanceof UpstreamFailure
      ? ((failure as DomainError).detail as Error)
      : failure;
  return { name, message };
}
