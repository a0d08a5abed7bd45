import type { Channel } from '../../mcp/channel.js';
import { Link } from '../../mcp/link.js';
import { UpstreamTimeoutError } from '../../mcp/mcp-errors.js';
import type { ConnectionRef } from './connection.types.js';
import { withSetupUrl } from './connection-refusal.js';
import { statusAfter } from './connection-status.js';
import type { StatusObserver } from './status-recorder.js';

/** The row a link was made from. */
export type LinkedRow = Pick<ConnectionRef, 'id' | 'revision' | 'namespaceId'>;

/** The live end of a connection in this process: its channel, watched, so that every outcome reaches the status. */
export class ConnectionLink extends Link {
  readonly id: string;
  readonly revision: number;
  readonly namespaceId: string;

  /** @param setupUrl where a person can authorize the connection, or give what it lacks */
  constructor(
    { id, revision, namespaceId }: LinkedRow,
    channel: Channel,
    private readonly observer: StatusObserver,
    private readonly setupUrl: () => string,
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
    const status = saysSomething(method, error) ? statusAfter(error) : null;
    if (status) this.observer.failed(status);
    return withSetupUrl(error, this.setupUrl);
  }
}

/** One slow tool says nothing about the connection. */
function saysSomething(method: string, failure: Error): boolean {
  return !(failure instanceof UpstreamTimeoutError && method === 'tools/call' && failure.outcomeUnknown);
}
