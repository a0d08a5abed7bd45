import { Module } from '@nestjs/common';
import { ToolOutputsService } from './tool-outputs.service.js';

/** Where tool answers are shown to what learns from them. Serves nothing. */
@Module({ providers: [ToolOutputsService], exports: [ToolOutputsService] })
export class ToolSchemasCoreModule {}
