import { Injectable, Logger } from '@nestjs/common';
import { CallHooks, type HookedTarget } from '../../../mcp/client/tools/call-hooks.js';
import type { HandleOwner } from '../../../mcp/client/upstream-handle.js';
import type { McpCall, McpReply } from '../../../mcp/protocol/channel.js';
import {
  CallerLeftError,
  UpstreamError,
  UpstreamFailure,
  UpstreamTimeoutError,
} from '../../../mcp/protocol/mcp-errors.js';
import { statusAfter } from './connection-status.js';
import { ConnectionUrls } from './connection-urls.js';
import type { ConnectionTarget } from './connection.entity.js';
import { ConnectionEvents } from './connection.events.js';
import { withSetupUrl } from './connections.errors.js';
import { type StatusObserver, StatusRecorder } from './status-recorder.js';

interface OwnerServices {
  connectionEvents: ConnectionEvents;
  connectionUrls: ConnectionUrls;
  callHooks: CallHooks;
}

export class ConnectionOwner implements HandleOwner {
  private readonly logger = new Logger('connections');

  /** @param withheld names of listed tools that the owner's choice hides */
  constructor(
    public target: ConnectionTarget,
    readonly withheld: ReadonlySet<string>,
    private readonly observer: StatusObserver,
    private readonly services: OwnerServices,
  ) {}

  get callHooks(): CallHooks {
    return this.services.callHooks;
  }

  hookedTarget(): HookedTarget {
    const { id, namespace, connectionId } = this.target;
    return { kind: 'connection', id, name: `${namespace}/${connectionId}` };
  }

  timeoutOf(call: McpCall): number {
    const { callTimeoutMs } = this.target;
    // Only calls over MCP endpoints receive notifications.
    return callTimeoutMs !== null && call.onNotification ? callTimeoutMs : call.timeoutMs;
  }

  succeeded(call?: McpCall, reply?: McpReply): void {
    this.observer.succeeded();
    if (!this.target.recordingUntil || !call || !reply) return;
    try {
      this.services.connectionEvents.emit('answered', this.target, call, reply);
    } catch (error) {
      this.logger.error({
        msg: 'a call was not recorded',
        connection: `${this.target.namespace}/${this.target.connectionId}`,
        account: this.target.accountId,
        err: error,
      });
    }
  }

  failed(method: string, error: Error, isGone: boolean): Error {
    if (isGone && error instanceof UpstreamFailure && error.outcomeUnknown) {
      if (error instanceof CallerLeftError) return error;
      return new UpstreamError('The connection was deleted before the response arrived.', {
        detail: error,
        outcomeUnknown: true,
      }).ofCall();
    }
    // The status of an uplink follows its tunnel, which knows why it closed.
    if (this.target.kind === 'uplink') return error;
    // One slow tool does not change the status.
    const isSlowTool = error instanceof UpstreamTimeoutError && method === 'tools/call' && error.outcomeUnknown;
    // A server that returns a retry time works.
    const isWait = error instanceof UpstreamError && error.retryAfterSeconds !== undefined;
    const status = isSlowTool || isWait ? null : statusAfter(error);
    if (status) this.observer.failed(status);
    // The person authorizes the connection or enters missing values on the setup page.
    const { id, setupEpoch, namespace, ownerName } = this.target;
    return withSetupUrl(error, {
      url: (holder) => this.services.connectionUrls.setup(id, setupEpoch, holder),
      personUrl: (holder) => this.services.connectionUrls.personSetup(id, setupEpoch, holder),
      namespace,
      ownerName,
    });
  }
}

@Injectable()
export class ConnectionOwners implements OwnerServices {
  constructor(
    readonly connectionEvents: ConnectionEvents,
    readonly connectionUrls: ConnectionUrls,
    readonly callHooks: CallHooks,
    private readonly statusRecorder: StatusRecorder,
  ) {}

  ownerOf(target: ConnectionTarget, withheld: ReadonlySet<string>): ConnectionOwner {
    return new ConnectionOwner(target, withheld, this.statusRecorder.observer(target), this);
  }
}
