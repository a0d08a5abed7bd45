import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { roleModule } from '../../config/role-module.js';
import { AuthModule } from '../auth/auth.module.js';
import { ServersModule } from '../servers/servers.module.js';
import { ToolOutputShape } from './tool-output-shape.entity.js';
import { ToolOutputsService } from './tool-outputs.service.js';
import { ToolSchemasController } from './tool-schemas.controller.js';
import { ToolSchemasService } from './tool-schemas.service.js';
import { ToolShapesRepository } from './tool-shape.repository.js';

@Module({})
export class ToolSchemasModule {
  static readonly forRoles = roleModule((env) => ({
    module: ToolSchemasModule,
    api: {
      imports: [TypeOrmModule.forFeature([ToolOutputShape]), ServersModule.forRoles(env), AuthModule.forRoles(env)],
      controllers: [ToolSchemasController],
      providers: [ToolOutputsService, ToolShapesRepository, ToolSchemasService],
      exports: [ToolOutputsService],
    },
  }));
}
