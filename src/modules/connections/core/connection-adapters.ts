import { Injectable, type OnModuleInit } from '@nestjs/common';
import { AuthAdaptersService } from '../../oauth/auth-adapters.service.js';
import type { AuthAdapter } from '../../../mcp/oauth/auth-adapter.types.js';
import { ServerChannelsService } from '../../run/server-channels.service.js';
import { ConnectionHandles } from './connection-handles.js';

/** Finds, for those who keep tokens, the code that authorizes the users of a connection's server. */
@Injectable()
export class ConnectionAdapters implements OnModuleInit {
  constructor(
    private readonly adapters: AuthAdaptersService,
    private readonly links: ConnectionHandles,
    private readonly runs: ServerChannelsService,
  ) {}

  onModuleInit(): void {
    this.adapters.provide((connectionId) => this.of(connectionId));
  }

  private async of(connectionId: string): Promise<AuthAdapter | null> {
    const target = await this.links.stored(connectionId);
    if (target?.kind !== 'server' || target.serverId === null) return null;
    return this.runs.adapterFor(target.serverId, target);
  }
}
