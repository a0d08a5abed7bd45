import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { roleModule } from '../../../config/role-module.js';
import { AuthModule } from '../../auth/auth.module.js';
import { NamespacesModule } from '../../namespaces/namespaces.module.js';
import { ToolSchemasModule } from '../../tool-schemas/tool-schemas.module.js';
import { ConnectionCoreModule } from '../core/connection-core.module.js';
import { transports } from '../core/connection-transports.js';
import { ConnectionMock, MockCall, MockReply, SimulatorUsage } from './mock.entity.js';
import { MockChannels } from './mock-channels.js';
import { MockCreation } from './mock-creation.js';
import { MockModels, MockRecordings } from './mock-models.service.js';
import { MocksRepository } from './mock.repository.js';

@Module({})
export class MockModule {
  static readonly forRoles = roleModule((env) => ({
    module: MockModule,
    api: {
      imports: [
        TypeOrmModule.forFeature([ConnectionMock, MockCall, MockReply, SimulatorUsage]),
        AuthModule.forRoles(env),
        ConnectionCoreModule.forRoles(env),
        NamespacesModule.forRoles(env),
        ToolSchemasModule.forRoles(env),
      ],
      providers: [
        MockChannels,
        { provide: transports.mock, useExisting: MockChannels },
        MockCreation,
        MockModels,
        MockRecordings,
        MocksRepository,
      ],
      exports: [MockCreation, MockModels, MockRecordings],
    },
  }));
}
