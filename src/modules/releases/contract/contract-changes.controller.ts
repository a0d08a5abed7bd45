import { Controller, Get, Query } from '@nestjs/common';
import { ApiTags } from '#api-docs';
import { ApiErrors } from '../../../platform/http/api-docs.decorators.js';
import { PageQueryDto } from '../../../platform/http/pagination.dto.js';
import { Access, CurrentCaller } from '../../auth/access.decorator.js';
import { ApiServerName, TargetServer } from '../../servers/server.decorator.js';
import { ServersService } from '../../servers/servers.service.js';
import type { Caller } from '../../auth/access.types.js';
import type { ServerRef } from '../../servers/server.types.js';
import { ContractVersionListDto } from './contract-changes.dto.js';
import { ReleaseContracts } from './release-contracts.js';

@ApiTags('Servers')
@ApiServerName()
@Controller('servers/:qualifiedName/changes')
export class ContractChangesController {
  constructor(
    private readonly releaseContracts: ReleaseContracts,
    private readonly serversService: ServersService,
  ) {}

  /**
   * List the changes of a server's tools, resources and prompts. One entry for each release that became current and for
   * each change found without a release, newest first, each compared with the one before. The newest 500 are stored. For
   * everybody who may read the server, but for a private one not for accounts that were granted only tools.
   */
  @Get()
  @Access('servers:read', { anonymous: true })
  @ApiErrors(400, { status: 404, message: 'Server not found' })
  async list(
    @TargetServer() server: ServerRef,
    @CurrentCaller() caller: Caller,
    @Query() query: PageQueryDto,
  ): Promise<ContractVersionListDto> {
    if (server.visibility === 'private') await this.serversService.requireWhole(caller, server);
    return this.releaseContracts.list(server, query);
  }
}
