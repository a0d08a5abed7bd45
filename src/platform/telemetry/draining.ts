import { Injectable } from '@nestjs/common';

/** The process still serves for `DRAIN_MS`, and `/ready` directs new requests elsewhere. */
@Injectable()
export class Draining {
  isDraining = false;

  begin(): void {
    this.isDraining = true;
  }
}
