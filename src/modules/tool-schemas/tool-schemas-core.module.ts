import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { ToolOutputShape } from './tool-output-shape.entity.js';
import { ToolOutputsService } from './tool-outputs.service.js';
import { ToolShapeRepository } from './tool-shape.repository.js';

/** Sampling of tool results, without routes. */
@Module({
  imports: [TypeOrmModule.forFeature([ToolOutputShape])],
  providers: [ToolOutputsService, ToolShapeRepository],
  exports: [ToolOutputsService, ToolShapeRepository],
})
export class ToolSchemasCoreModule {}
