import { Injectable } from '@nestjs/common';
import { ServersService } from '../servers/servers.service.js';
import { InvocationObserver, type Invocation } from './invocation.types.js';

/** Counts calls as uses of their server, and keeps nothing else of them. */
@Injectable()
export class UseCounter extends InvocationObserver {
  readonly wantsRecords = false;

  constructor(private readonly servers: ServersService) {
    super();
  }

  started(serverId: string): void {
    this.servers.countUse(serverId);
  }

  finished(_invocation: Invocation): void {}
}
