import { Injectable } from '@nestjs/common';
import type { Invocation, InvocationPiece } from './invocation.types.js';

/** Takes what is to be kept of requests to servers. Stands on the way of calls: it never waits and never throws. */
@Injectable()
export class InvocationsService {
  /** Keeps one request. */
  record(_invocation: Invocation): void {}

  /** Keeps more of one, whether its record came already or comes later. */
  append(_piece: InvocationPiece): void {}
}
