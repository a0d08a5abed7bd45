import type { Channel } from '../../mcp/channel.js';
import { Link } from '../../mcp/link.js';
import { CallerLeftError, UpstreamFailure, UpstreamTimeoutError } from '../../mcp/mcp-errors.js';
import { statusAfter } from './connection-status.js';
import type { StatusObserver } from './status-recorder.js';

/** The row a link was made from. */
export interface LinkedRow {
  id: string;
  revision: number;
  namespaceId: string;
}

/** The live end of a connection in this process: its channel, watched, so that every outcome reaches the status. */
export class ConnectionLink extends Link {
  readonly id: string;
  readonly revision: number;
  readonly namespaceId: string;

  constructor(
    { id, revision, namespaceId }: LinkedRow,
    channel: Channel,
    private readonly observer: StatusObserver,
  ) {
    super(channel);
    this.id = id;
    this.revision = revision;
    this.namespaceId = namespaceId;
  }

  protected override succeeded(): void {
    this.observer.succeeded();
  }

  protected override failed(method: string, error: Error): Error {
    if (error instanceof UpstreamFailure && saysSomething(method, error)) this.observer.failed(statusAfter(error));
    return error;
  }
}

/** A caller that leaves, or one slow tool, says nothing about the connection. */
function saysSomething(method: string, failure: UpstreamFailure): boolean {
  if (failure instanceof CallerLeftError) return false;
  return !(failure instanceof UpstreamTimeoutError && method === 'tools/call' && failure.outcomeUnknown);
}
