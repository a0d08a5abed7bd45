import { Logger } from '@nestjs/common';
import type { Channel, McpCall, McpReply } from '../../../mcp/protocol/channel.js';
import { UpstreamHandle } from '../../../mcp/client/upstream-handle.js';
import {
  CallerLeftError,
  UpstreamError,
  UpstreamFailure,
  UpstreamTimeoutError,
} from '../../../mcp/protocol/mcp-errors.js';
import type { ConnectionEvents } from './connection.events.js';
import type { ConnectionTarget } from './connection.types.js';
import { withSetupUrl } from './connection-refusal.js';
import { statusAfter } from './connection-status.js';
import type { StatusObserver } from './status-recorder.js';

/** The row that a handle was made from. */
export type ConnectionRow = Pick<ConnectionTarget, 'id' | 'revision' | 'namespaceId' | 'kind' | 'recordingUntil'> & {
  serverId?: string | null;
};

/** The channel of a connection in this process, shared by all callers. Reports the outcome of every call to the status. */
export class ConnectionHandle extends UpstreamHandle {
  readonly id: string;
  readonly revision: number;
  readonly namespaceId: string;
  /** The registry server that is the target; null for other targets and after the server was deleted. */
  readonly serverId: string | null;
  private readonly kind: ConnectionRow['kind'];
  readonly recordingUntil: Date | null;
  private readonly logger = new Logger('connections');

  /** @param setupUrl the page where a person authorizes the connection or enters missing values */
  constructor(
    { id, revision, namespaceId, kind, recordingUntil, serverId = null }: ConnectionRow,
    channel: Channel,
    private readonly observer: StatusObserver,
    private readonly events: ConnectionEvents,
    private readonly setupUrl: () => string,
  ) {
    super(channel);
    this.id = id;
    this.revision = revision;
    this.namespaceId = namespaceId;
    this.serverId = serverId;
    this.kind = kind;
    this.recordingUntil = recordingUntil;
  }

  /** Reports the answer of a recorded connection. The caller does not wait for it. */
  protected override started(call: McpCall, reply: Promise<McpReply>): void {
    if (!this.recordingUntil) return;
    reply
      .then(
        (answer) => this.events.emit('answered', this, call, answer),
        () => undefined,
      )
      .catch((error: unknown) => this.logger.error({ msg: 'a call was not recorded', err: error }));
  }

  protected override succeeded(): void {
    this.observer.succeeded();
  }

  protected override failed(method: string, error: Error): Error {
    if (this.isGone && error instanceof UpstreamFailure && error.outcomeUnknown) return afterDeletion(error);
    // The status of an uplink follows its tunnel, which has the reason of its end.
    if (this.kind === 'uplink') return error;
    const status = isAboutConnection(method, error) ? statusAfter(error) : null;
    if (status) this.observer.failed(status);
    return withSetupUrl(error, this.setupUrl);
  }
}

/** The error of a call whose session was ended here, because the connection was deleted. */
function afterDeletion(error: UpstreamFailure): Error {
  if (error instanceof CallerLeftError) return error;
  return new UpstreamError('The connection was deleted before the answer came.', error, true).ofCall();
}

/** False for a timeout of a tool call: one slow tool does not change the status. */
function isAboutConnection(method: string, failure: Error): boolean {
  return !(failure instanceof UpstreamTimeoutError && method === 'tools/call' && failure.outcomeUnknown);
}
