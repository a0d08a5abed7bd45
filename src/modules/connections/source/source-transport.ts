import { Injectable } from '@nestjs/common';
import type { Channel } from '../../../mcp/protocol/channel.js';
import type { ProgramRef } from '../../../hosting/hosting.types.js';
import { HostedChannelsService } from '../../../hosting/mcp/hosted-channels.service.js';
import type { ConnectionTransport } from '../core/connection-transports.js';
import type { TargetOf } from '../core/connection.entity.js';

@Injectable()
export class SourceTransport implements ConnectionTransport<'source'> {
  constructor(private readonly hostedChannelsService: HostedChannelsService) {}

  channelTo({ id, isStateful }: TargetOf<'source'>): Channel {
    // The module of a connection never changes, so its program has one version.
    const program: ProgramRef = { kind: 'source', id, ownerId: id, engine: 'worker', isStateful };
    return this.hostedChannelsService.channelTo(program, {
      mcpPath: '/',
      name: 'The module',
      sessionsOf: `connection ${id}`,
    });
  }
}
