import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { ServersModule } from '../servers/servers.module.js';
import { ToolSchemasController } from './tool-schemas.controller.js';
import { ToolSchemasCoreModule } from './tool-schemas-core.module.js';
import { ToolSchemasService } from './tool-schemas.service.js';

/** Inferred output schemas, for the owners of servers. */
@Module({
  imports: [ToolSchemasCoreModule, ServersModule, AuthModule],
  controllers: [ToolSchemasController],
  providers: [ToolSchemasService],
})
export class ToolSchemasModule {}
