import { Injectable } from '@nestjs/common';
import type { Dispatcher } from 'undici';
import { Hosting } from './hosting.js';
import { HostingUnavailableError } from './hosting.errors.js';
import type { HostedRequest, ProgramRef } from './hosting.types.js';

const WHY = 'This process runs no hosted code: start one with the role "host" (ROLES).';

/** In a process without the role `host`: nothing runs. */
@Injectable()
export class HostingAbsent extends Hosting {
  dispatch(_ref: ProgramRef, _request: HostedRequest, handler: Dispatcher.DispatchHandler): void {
    handler.onResponseError?.(noController, new HostingUnavailableError(WHY));
  }

  whyNot(): Promise<string | null> {
    return Promise.resolve(WHY);
  }

  async forget(): Promise<void> {}

  async current(): Promise<void> {}
}

/** Of a request that never began: there is nothing to steer. */
const noController: Dispatcher.DispatchController = {
  aborted: true,
  paused: false,
  reason: null,
  abort: () => undefined,
  pause: () => undefined,
  resume: () => undefined,
};
