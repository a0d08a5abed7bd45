import { Logger } from '@nestjs/common';
import type { Channel, McpCall, McpReply } from '../../../mcp/protocol/channel.js';
import { UpstreamHandle } from '../../../mcp/client/upstream-handle.js';
import {
  CallerLeftError,
  UpstreamError,
  UpstreamFailure,
  UpstreamTimeoutError,
} from '../../../mcp/protocol/mcp-errors.js';
import type { ConnectionTarget } from './connection.types.js';
import { withSetupUrl } from './connection-refusal.js';
import type { CallTap } from '../mock/call-recorder.js';
import { statusAfter } from './connection-status.js';
import type { StatusObserver } from './status-recorder.js';

/** The row a link was made from. */
export type ConnectionRow = Pick<ConnectionTarget, 'id' | 'revision' | 'namespaceId' | 'kind'> & {
  serverId?: string | null;
};

/** The live end of a connection in this process: its channel, watched, so that every outcome reaches the status. */
export class ConnectionHandle extends UpstreamHandle {
  readonly id: string;
  readonly revision: number;
  readonly namespaceId: string;
  /** The registry's server it leads to; null for everything else, and when that is gone. */
  readonly serverId: string | null;
  private readonly kind: ConnectionRow['kind'];
  private readonly logger = new Logger('connections');

  /** @param setupUrl where a person can authorize the connection, or give what it lacks */
  constructor(
    { id, revision, namespaceId, kind, serverId = null }: ConnectionRow,
    channel: Channel,
    private readonly observer: StatusObserver,
    private readonly tap: CallTap | null,
    private readonly setupUrl: () => string,
  ) {
    super(channel);
    this.id = id;
    this.revision = revision;
    this.namespaceId = namespaceId;
    this.serverId = serverId;
    this.kind = kind;
  }

  /** Records the call beside its caller, who does not wait for it. */
  protected override started(call: McpCall, reply: Promise<McpReply>): void {
    const { tap } = this;
    if (!tap) return;
    reply
      .then(
        (one) => tap(call, one),
        () => undefined,
      )
      .catch((error: unknown) => this.logger.error({ msg: 'a call was not recorded', err: error }));
  }

  protected override succeeded(): void {
    this.observer.succeeded();
  }

  protected override failed(method: string, error: Error): Error {
    if (this.isGone && error instanceof UpstreamFailure && error.outcomeUnknown) return deletedMeanwhile(error);
    // The status of an uplink follows its tunnel, which knows better why it ended.
    if (this.kind === 'uplink') return error;
    const status = saysSomething(method, error) ? statusAfter(error) : null;
    if (status) this.observer.failed(status);
    return withSetupUrl(error, this.setupUrl);
  }
}

/** The upstream did not break off: its session was ended here. */
function deletedMeanwhile(error: UpstreamFailure): Error {
  if (error instanceof CallerLeftError) return error;
  return new UpstreamError('The connection was deleted before the answer came.', error, true).ofCall();
}

/** One slow tool says nothing about the connection. */
function saysSomething(method: string, failure: Error): boolean {
  return !(failure instanceof UpstreamTimeoutError && method === 'tools/call' && failure.outcomeUnknown);
}
