import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { roleModule } from '../../../config/role-module.js';
import { AuthModule } from '../../auth/auth.module.js';
import { ConnectionCoreModule } from '../core/connection-core.module.js';
import { transports } from '../core/connection-transports.js';
import { InternalUplinkController } from './internal-uplink.controller.js';
import { TunnelLimits } from './tunnel-limits.js';
import { UplinkChannels } from './uplink-channels.js';
import { UplinkTunnel } from './uplink-tunnel.entity.js';
import { UplinkTunnelsRepository } from './uplink-tunnels.repository.js';
import { UplinkTunnels } from './uplink-tunnels.js';
import { UplinkController } from './uplink.controller.js';
import { UplinkGateway } from './uplink.gateway.js';

@Module({})
export class UplinkModule {
  static readonly forRoles = roleModule((env) => ({
    module: UplinkModule,
    api: {
      imports: [TypeOrmModule.forFeature([UplinkTunnel]), AuthModule.forRoles(env), ConnectionCoreModule.forRoles(env)],
      controllers: [UplinkController, InternalUplinkController],
      providers: [
        { provide: transports.uplink, useExisting: UplinkChannels },
        UplinkChannels,
        UplinkGateway,
        UplinkTunnelsRepository,
        UplinkTunnels,
        TunnelLimits,
      ],
      exports: [UplinkTunnels, TunnelLimits],
    },
  }));
}
