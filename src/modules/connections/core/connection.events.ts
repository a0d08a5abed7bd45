import { EventEmitter } from 'node:events';
import { Injectable } from '@nestjs/common';
import type { McpCall, McpReply } from '../../../mcp/protocol/channel.js';

declare module '../../../platform/queue/pub-sub.js' {
  interface Topics {
    'connections.changed': ConnectionChange;
  }
}

export interface ConnectionChange {
  /** Key of the form `<id of the namespace>/<connectionId>`. */
  key: string;
  id: string;
  revision: number | null;
  /** True if it was just suspended: running calls are cancelled. */
  isSuspended?: boolean;
}

/** Events of connections in this process. A listener must not throw; the handle logs an error of an `answered` listener. */
@Injectable()
export class ConnectionEvents extends EventEmitter<{
  /** A connection changed, in any process. The process that changed it emits this twice. */
  changed: [change: ConnectionChange];
  /** Emitted only while the calls of the connection are recorded (`recordingUntil`). */
  answered: [connection: { id: string; recordingUntil: Date | null }, call: McpCall, reply: McpReply];
}> {}
