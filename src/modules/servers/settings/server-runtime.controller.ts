import { Body, Controller, Get, Param, Patch } from '@nestjs/common';
import { ApiParam, ApiTags } from '@nestjs/swagger';
import { ApiErrors } from '../../../platform/http/api-docs.decorators.js';
import { Access, CurrentNamespace } from '../../auth/access.decorator.js';
import type { OwnedNamespace } from '../../auth/access.types.js';
import { QualifiedNamePipe } from '../qualified-name.js';
import type { QualifiedName } from '../qualified-name.js';
import { ServerRuntimeDto, UpdateServerRuntimeDto } from './server-settings.dto.js';
import { ServerRuntimeService } from './server-runtime.service.js';
import { ownServerOrNone, qualifiedNameParam, serverNotFound } from '../server.decorator.js';

@ApiTags('Server settings')
@Controller('servers/:qualifiedName/runtime')
@ApiParam(qualifiedNameParam)
export class ServerRuntimeController {
  constructor(private readonly runtime: ServerRuntimeService) {}

  /** Get the runtime settings of a server. They say where its code may go, and what its logs keep. */
  @Get()
  @Access('servers:read', ownServerOrNone)
  @ApiErrors(serverNotFound)
  get(
    @Param('qualifiedName', QualifiedNamePipe) { name }: QualifiedName,
    @CurrentNamespace() namespace: OwnedNamespace,
  ): Promise<ServerRuntimeDto> {
    return this.runtime.get(namespace, name);
  }

  /** Change the runtime settings of a server. Code that runs starts anew with them; requests under way end as they began. */
  @Patch()
  @Access('servers:write', ownServerOrNone)
  @ApiErrors(400, serverNotFound)
  update(
    @Param('qualifiedName', QualifiedNamePipe) { name }: QualifiedName,
    @CurrentNamespace() namespace: OwnedNamespace,
    @Body() body: UpdateServerRuntimeDto,
  ): Promise<ServerRuntimeDto> {
    return this.runtime.update(namespace, name, body);
  }
}
