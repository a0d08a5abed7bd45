import { EventEmitter } from 'node:events';
import { Injectable } from '@nestjs/common';
import type { CallOrigin } from '../../mcp/protocol/channel.js';
import type { ConnectionCall, Invocation } from './invocation.types.js';

/** The target of a call: a connection, or a server at its run endpoint. Ids of rows. */
export interface CalledTarget {
  kind: 'connection' | 'server';
  id: string;
}

/** Events of calls in this process. A listener runs on the path of the call: it must not throw, and does not wait. */
@Injectable()
export class CallEvents extends EventEmitter<{
  /** A call of a client ended, whatever its outcome, unless it was refused before the target was called. */
  ended: [target: CalledTarget, by: CallOrigin];
  /** This process wrote rows of the log, or parts of them. */
  written: [parts: (Invocation | ConnectionCall)[]];
}> {}
