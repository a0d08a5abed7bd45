import { Controller, Get, Param } from '@nestjs/common';
import { ApiParam, ApiTags } from '#api-docs';
import { ApiErrors } from '../../platform/http/api-docs.decorators.js';
import { Access } from '../auth/access.decorator.js';
import { ApiServerName, ownServerOrNone, TargetServer } from '../servers/server.decorator.js';
import type { ServerRef } from '../servers/server.types.js';
import { ToolOutputSchemaDto } from './tool-schema.dto.js';
import { ToolSchemasService } from './tool-schemas.service.js';

@ApiTags('Servers')
@ApiServerName()
@Controller('servers/:qualifiedName/experimental/tools')
export class ToolSchemasController {
  constructor(private readonly toolSchemasService: ToolSchemasService) {}

  /**
   * Infer the output schema of a tool. From its recent successful results, for the server's owner only. A sample is
   * `structuredContent`, else the first text as JSON, else the text. Spec 4.8.
   */
  @Get('*toolName/output-schema')
  @ApiParam({ name: 'toolName', description: "The tool's name in the server's list.", example: 'echo', type: String })
  @Access('servers:read', ownServerOrNone)
  @ApiErrors({ status: 404, message: 'No output samples found' })
  infer(@TargetServer() server: ServerRef, @Param('toolName') name: string[]): Promise<ToolOutputSchemaDto> {
    return this.toolSchemasService.infer(server, name.join('/'));
  }
}
