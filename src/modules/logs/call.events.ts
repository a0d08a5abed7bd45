import { EventEmitter } from 'node:events';
import { Injectable } from '@nestjs/common';
import type { CallOrigin } from '../../mcp/protocol/channel.js';
import type { ConnectionCall, Invocation } from './invocation.types.js';

/** The target of a call: a connection, or a server at its run endpoint. Ids are row ids. */
export interface CalledTarget {
  kind: 'connection' | 'server';
  id: string;
}

/** Events of calls in this process. Listeners run in the path of the call: they must not throw, and are not awaited. */
@Injectable()
export class CallEvents extends EventEmitter<{
  /** Emitted after a call, even a failed one, unless it was rejected before the target was called. */
  ended: [target: CalledTarget, by: CallOrigin];
  /** Emitted when this process wrote rows of the log, or parts of them. */
  written: [parts: (Invocation | ConnectionCall)[]];
}> {}
