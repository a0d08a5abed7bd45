import type { CallTiming, McpReply } from '../../../mcp/protocol/channel.js';
import type { CallObserver } from '../../../mcp/server/mcp-request.js';
import { CallerLeftError, UpstreamFailure } from '../../../mcp/protocol/mcp-errors.js';
import { uuidV7 } from '../../../platform/database/uuid-v7.js';
import { toStorableText } from '../../../platform/database/storable.js';
import { DomainError, statusOf } from '../../../platform/errors/domain-error.js';
import { domainErrorOf } from '../../../platform/errors/error-body.js';
import type { InvocationOutcome } from '../../logs/invocation.types.js';
import { originalOf } from '../core/connection-refusal.js';
import { statusAfter } from '../core/connection-status.js';
import { ResourceNotFoundError, ToolError } from '../core/connections.errors.js';
import type { ConnectionInvocation } from './connection-invocation.entity.js';

/** What is kept of texts that others wrote. */
const NAME_CHARS_MAX = 200;
const MESSAGE_CHARS_MAX = 1_000;

/** One request as its row keeps it. */
export type LoggedCall = Omit<ConnectionInvocation, 'connection'>;

/**
 * Gathers what there is to say of one request to a connection. Nothing of what was asked or answered is looked at but the
 * method, the tool's name and the code of an error.
 */
export class CallRecord implements CallObserver {
  /** The row of the connection that was called; null until it is known, and for good where there is none. */
  connectionId: string | null = null;
  readonly timing: CallTiming = {};
  /** The id of its row: what code that runs here prints during the call is found by it. */
  readonly invocationId = uuidV7();
  private readonly at = new Date();
  private readonly startedAt = performance.now();
  private rpcMethod: string | null = null;
  private toolName: string | null = null;
  /** It is a client's answer to a question of the server's. */
  private isAnswer = false;
  private failure: Error | null = null;
  /** The code of a JSON-RPC error that the upstream answered. */
  private errorCode: number | null = null;
  /** Set when the request is not answered by the front, but by whoever catches what it threw. */
  private thrownStatus: number | null = null;

  asked(method: string | null, params: unknown): void {
    this.rpcMethod = method;
    this.isAnswer = method === null;
    const name = method === 'tools/call' ? (params as { name?: unknown } | undefined)?.name : undefined;
    this.toolName = typeof name === 'string' ? name : null;
  }

  answered({ error }: McpReply): void {
    this.errorCode = error?.code ?? null;
  }

  failed(error: Error): void {
    this.failure = error;
  }

  /** It failed before the front answered. */
  threw(error: unknown): void {
    this.failure = error as Error;
    this.thrownStatus = statusOf[domainErrorOf(error)?.kind ?? 'internal'];
  }

  /** What there is to keep; null for what is no call of a connection. */
  finish({ method, url, status }: { method: string; url: string; status: number }): LoggedCall | null {
    const { connectionId } = this;
    // Messages that want no answer are no calls.
    if (connectionId === null || this.isAnswer || this.rpcMethod?.startsWith('notifications/')) return null;
    const { guardMs, queueMs, connectMs, firstByteMs } = this.timing;
    const failure = this.told();
    return {
      id: this.invocationId,
      connectionId,
      at: this.at,
      method,
      url: withoutQuery(url),
      rpcMethod: bounded(this.rpcMethod, NAME_CHARS_MAX),
      toolName: bounded(this.toolName, NAME_CHARS_MAX),
      status: this.thrownStatus ?? status,
      outcome: this.outcome(),
      failureName: failure && failure.name,
      failureMessage: bounded(failure && failure.message, MESSAGE_CHARS_MAX),
      guardMs: tenths(guardMs),
      queueMs: tenths(queueMs),
      connectMs: tenths(connectMs),
      firstByteMs: tenths(firstByteMs),
      totalMs: tenths(performance.now() - this.startedAt) ?? 0,
    };
  }

  /** What went wrong. An error of the upstream's by its code alone: its words may repeat what it was asked. */
  private told(): { name: string; message: string } | null {
    const { failure, errorCode } = this;
    if (failure instanceof ResourceNotFoundError) {
      return { name: failure.name, message: 'The MCP server has no such tool.' };
    }
    if (failure && !(failure instanceof ToolError)) {
      const original = originalOf(failure);
      return { name: original.name, message: domainErrorOf(original)?.message ?? 'Internal server error' };
    }
    if (errorCode === null) return null;
    return { name: 'RpcError', message: `The MCP server answered with the JSON-RPC error ${errorCode}.` };
  }

  private outcome(): InvocationOutcome {
    const { failure } = this;
    if (failure instanceof CallerLeftError) return 'canceled';
    if (failure && !(failure instanceof ToolError)) return isDenial(failure) ? 'denied' : 'exception';
    return this.rpcMethod === null ? 'denied' : 'ok';
  }
}

/** Whether somebody has to act before such a request can work at all: it was refused here, or wants what it lacks. */
function isDenial(failure: Error): boolean {
  const state = statusAfter(failure)?.state;
  if (state !== undefined && state !== 'error') return true;
  return failure instanceof DomainError && !(failure instanceof UpstreamFailure);
}

function withoutQuery(url: string): string {
  const mark = url.indexOf('?');
  return mark < 0 ? url : url.slice(0, mark);
}

function bounded(text: string | null, charsMax: number): string | null {
  return text === null ? null : toStorableText(text.slice(0, charsMax));
}

function tenths(ms: number | undefined): number | null {
  return ms === undefined ? null : Math.round(ms * 10) / 10;
}
