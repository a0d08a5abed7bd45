import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { roleModule } from '../../../config/role-module.js';
import { AuthModule } from '../../auth/auth.module.js';
import { NamespacesModule } from '../../namespaces/namespaces.module.js';
import { OAuthModule } from '../../oauth/oauth.module.js';
import { RunModule } from '../../run/run.module.js';
import { serverHolders } from '../../servers/server.types.js';
import { ServersModule } from '../../servers/servers.module.js';
import { ConnectionHandles } from './connection-handles.js';
import { ConnectionOwners } from './connection-owner.js';
import { ConnectionReader } from './connection-reader.js';
import { ConnectionTargets } from './connection-targets.js';
import { ConnectionTransports } from './connection-transports.js';
import { ConnectionUrls } from './connection-urls.js';
import { ConnectionValues } from './connection-values.js';
import { Connection } from './connection.entity.js';
import { ConnectionEvents } from './connection.events.js';
import { ConnectionsRepository } from './connection.repository.js';
import { StatusRecorder } from './status-recorder.js';
import { StatusesRepository } from './status.repository.js';
import { TargetResolver } from './target-resolver.js';

const providers = [
  ConnectionEvents,
  ConnectionHandles,
  ConnectionOwners,
  ConnectionReader,
  ConnectionsRepository,
  ConnectionTargets,
  ConnectionTransports,
  ConnectionUrls,
  ConnectionValues,
  StatusRecorder,
  StatusesRepository,
  TargetResolver,
];

/**
 * Connections, their status, and the channels to their targets. All other directories of connections use this module.
 */
@Module({})
export class ConnectionCoreModule {
  static readonly forRoles = roleModule((env) => ({
    module: ConnectionCoreModule,
    'api or host': { imports: [TypeOrmModule.forFeature([Connection])], exports: [TypeOrmModule] },
    api: {
      imports: [AuthModule, NamespacesModule, ServersModule, OAuthModule, RunModule].map((module) =>
        module.forRoles(env),
      ),
      providers: [...providers, { provide: serverHolders.connections, useExisting: ConnectionHandles }],
      exports: [ServersModule, OAuthModule, RunModule, ...providers],
    },
  }));
}
