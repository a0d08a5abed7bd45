import { Controller, Get, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { ApiErrors } from '../../../platform/http/api-docs.decorators.js';
import { PageQueryDto } from '../../../platform/http/pagination.dto.js';
import { Access } from '../../auth/access.decorator.js';
import { ApiServerName, TargetServer } from '../../servers/server.decorator.js';
import type { ServerRef } from '../../servers/server.types.js';
import { ContractVersionListDto } from './contract-changes.dto.js';
import { ReleaseContracts } from './release-contracts.js';

@ApiTags('Servers')
@ApiServerName()
@Controller('servers/:qualifiedName/changes')
export class ContractChangesController {
  constructor(private readonly contracts: ReleaseContracts) {}

  /**
   * List the changes of a server's tools, resources and prompts. One entry for each release that became current and for
   * each change found without a release, newest first, each compared with the one before. The newest 500 are stored. For
   * everybody who may read the server.
   */
  @Get()
  @Access('servers:read', { anonymous: true })
  @ApiErrors(400, { status: 404, message: 'Server not found' })
  list(@TargetServer() server: ServerRef, @Query() query: PageQueryDto): Promise<ContractVersionListDto> {
    return this.contracts.list(server, query);
  }
}
