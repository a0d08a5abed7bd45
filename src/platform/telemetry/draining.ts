import { Injectable } from '@nestjs/common';

/**
 * True once the process was signaled to stop: it still serves for `DRAIN_MS`, and `/ready` directs new requests
 * elsewhere.
 */
@Injectable()
export class Draining {
  isDraining = false;

  begin(): void {
    this.isDraining = true;
  }
}
