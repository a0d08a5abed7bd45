import type { IncomingMessage, ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import { CallEvents } from '../../logs/call.events.js';
import { ConnectionCallsService } from '../../logs/connection-calls.service.js';
import type { CallOrigin, CallTiming, McpReply } from '../../../mcp/protocol/channel.js';
import { failureOf } from '../../../mcp/protocol/failures.js';
import { isErrorResult } from '../../../mcp/protocol/messages.js';
import { traceHeaders, type TraceHeaders } from '../../../mcp/protocol/trace-context.js';
import { RequestRecord } from '../../../mcp/server/mcp-request.js';
import { domainErrorOf } from '../../../platform/errors/error-body.js';
import type { ConnectionCall, InvocationOutcome } from '../../logs/invocation.types.js';
import { originalOf, ResourceNotFoundError, ToolError } from '../core/connections.errors.js';

const MESSAGE_CHARS_MAX = 1_000;

/** Reads no content except the method, the tool's name, the code of an error and the `isError` of a result. */
export class CallRecord extends RequestRecord {
  /** Id of the connection; null while unknown, and if the connection does not exist. */
  connectionId: string | null = null;
  readonly timing: CallTiming = {};
  onRecorded: (call: ConnectionCall) => void = () => undefined;
  readonly trace: TraceHeaders;
  private errorCode: number | null = null;
  private isToolError = false;

  constructor({ headers }: Pick<IncomingMessage, 'headers'>, origin: CallOrigin | null) {
    super(origin);
    this.trace = traceHeaders((name) => headers[name]);
  }

  recordReply(reply: McpReply): void {
    this.errorCode = reply.error?.code ?? null;
    this.isToolError = this.toolName !== null && isErrorResult(reply);
  }

  /** @returns null for notifications, responses, and requests to a connection that does not exist */
  finish({ method, url, status }: { method: string; url: string; status: number }): ConnectionCall | null {
    const { connectionId } = this;
    if (connectionId === null || this.isResponse || this.rpcMethod?.startsWith('notifications/')) return null;
    const { guardMs, queueMs, connectMs, firstByteMs } = this.timing;
    const error = this.shownFailure();
    return {
      id: this.invocationId,
      connectionId,
      at: this.at,
      method,
      url: url.split('?', 1)[0],
      rpcMethod: this.rpcMethod,
      toolName: this.toolName,
      caller: this.origin,
      status: this.thrownStatus ?? status,
      outcome: this.outcome(),
      timing: {
        guardMs: tenths(guardMs),
        queueMs: tenths(queueMs),
        connectMs: tenths(connectMs),
        firstByteMs: tenths(firstByteMs),
        totalMs: tenths(this.elapsedMs) ?? 0,
      },
      lines: [],
      exceptions: error ? [{ at: this.at, name: error.name, message: error.message.slice(0, MESSAGE_CHARS_MAX) }] : [],
    };
  }

  /** Returns the failure to show, with only the code of an upstream error: its message can repeat arguments. */
  private shownFailure(): { name: string; message: string } | null {
    const { failure, errorCode } = this;
    if (failure instanceof ResourceNotFoundError) {
      return { name: failure.name, message: 'The MCP server has no such tool.' };
    }
    if (failure && !(failure instanceof ToolError)) {
      const original = originalOf(failure);
      return { name: original.name, message: domainErrorOf(original)?.message ?? 'Internal server error' };
    }
    if (this.isToolError) return { name: 'ToolError', message: 'The tool answered with a result that says isError.' };
    if (errorCode === null) return null;
    return { name: 'RpcError', message: `The MCP server answered with the JSON-RPC error ${errorCode}.` };
  }

  private outcome(): InvocationOutcome {
    const { failure } = this;
    if (failure && !(failure instanceof ToolError)) return failureOf(originalOf(failure)).outcome;
    if (this.rpcMethod === null) return 'denied';
    if (this.errorCode !== null) return 'rpcError';
    return this.isToolError ? 'toolError' : 'ok';
  }
}

export type RecordedRequest = Pick<IncomingMessage, 'method' | 'url' | 'headers'>;

@Injectable()
export class LogRecorder {
  constructor(
    private readonly connectionCallsService: ConnectionCallsService,
    private readonly callEvents: CallEvents,
  ) {}

  /** @throws the error of `work` */
  async record<T>(
    request: RecordedRequest,
    origin: CallOrigin | null,
    response: Pick<ServerResponse, 'statusCode'>,
    work: (record: CallRecord) => Promise<T>,
  ): Promise<T> {
    const { method = 'POST', url = '' } = request;
    const record = new CallRecord(request, origin);
    try {
      return await work(record);
    } catch (error) {
      record.threw(error);
      throw error;
    } finally {
      const call = record.finish({ method, url, status: response.statusCode });
      if (call) {
        this.connectionCallsService.record(call);
        record.onRecorded(call);
        const isCalled = origin !== null && call.outcome !== 'denied';
        if (isCalled) this.callEvents.emit('ended', { kind: 'connection', id: call.connectionId }, origin);
      }
    }
  }
}

function tenths(ms: number | undefined): number | null {
  return ms === undefined ? null : Math.round(ms * 10) / 10;
}
