import { Injectable } from '@nestjs/common';

/** True once the process was told to stop: it still serves for `DRAIN_MS`, and `/ready` sends new requests elsewhere. */
@Injectable()
export class Draining {
  isDraining = false;

  begin(): void {
    this.isDraining = true;
  }
}
