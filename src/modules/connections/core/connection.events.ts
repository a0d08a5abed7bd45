import { EventEmitter } from 'node:events';
import { Injectable } from '@nestjs/common';
import type { McpCall, McpReply } from '../../../mcp/protocol/channel.js';

declare module '../../../platform/queue/pub-sub.js' {
  interface Topics {
    /** A connection was created, changed or deleted. */
    'connections.changed': ConnectionChange;
  }
}

/** The payload of `connections.changed`, between processes and in one. */
export interface ConnectionChange {
  /** `<id of the namespace>/<connectionId>` */
  key: string;
  /** `connections.id` */
  id: string;
  /** Null for a deleted connection. */
  revision: number | null;
  /** True when it was suspended just now: its running calls end. */
  isSuspended?: boolean;
}

/** Events of connections in this process. A listener must not throw; the handle logs an error of an `answered` listener. */
@Injectable()
export class ConnectionEvents extends EventEmitter<{
  /** A connection changed, in whatever process. The process that changed it emits this twice. */
  changed: [change: ConnectionChange];
  /** The upstream answered a call of a connection whose calls are recorded (`recordingUntil`). */
  answered: [connection: { id: string; recordingUntil: Date | null }, call: McpCall, reply: McpReply];
}> {}
