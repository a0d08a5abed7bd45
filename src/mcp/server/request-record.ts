import { uuidV7 } from '../../platform/database/uuid-v7.js';
import { statusOf } from '../../platform/errors/domain-error.js';
import { domainErrorOf } from '../../platform/errors/error-body.js';
import type { CallObserver } from './mcp-request.js';

/** Collects the facts of one request for a log; subclasses decide what of its content they record. */
export abstract class RequestRecord implements CallObserver {
  protected readonly at = Date.now();
  protected readonly startedAt = performance.now();
  /** Null until the message was parsed, and for a client's response to a server's request. */
  protected rpcMethod: string | null = null;
  protected toolName: string | null = null;
  /** True for a client's response to a server's request. */
  protected isResponse = false;
  protected failure: Error | null = null;
  /** The status of an error that was thrown instead of being answered by the MCP server. */
  protected thrownStatus: number | null = null;

  /** @param invocationId the id of the record; hosted code receives it, so that its console lines have it too */
  constructor(readonly invocationId = uuidV7()) {}

  asked(method: string | null, params: unknown): void {
    this.rpcMethod = method;
    this.isResponse = method === null;
    const name = method === 'tools/call' ? (params as { name?: unknown } | undefined)?.name : undefined;
    this.toolName = typeof name === 'string' ? name : null;
  }

  failed(error: Error): void {
    this.failure = error;
  }

  /** The request failed before the MCP server answered it. */
  threw(error: unknown): void {
    this.failure = error as Error;
    this.thrownStatus = statusOf[domainErrorOf(error)?.kind ?? 'internal'];
  }

  protected get elapsedMs(): number {
    return performance.now() - this.startedAt;
  }
}
