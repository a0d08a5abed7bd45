import { Controller, Get, Query } from '@nestjs/common';
import { ApiTags } from '#api-docs';
import { ApiErrors } from '../../platform/http/api-docs.decorators.js';
import { UuidOr404 } from '../../platform/http/input.pipe.js';
import { PageQueryDto } from '../../platform/http/pagination.dto.js';
import { Access, CurrentAccountId } from '../auth/access.decorator.js';
import { GivenGrantListDto, ReceivedGrantListDto } from './grant.dto.js';
import { GrantsService } from './grants.service.js';

@ApiTags('Grants')
@Controller('accounts/:accountId/grants')
export class ReceivedGrantsController {
  constructor(private readonly grantsService: GrantsService) {}

  /** List grants that an account received, newest first. They give access to targets of other owners. */
  @Get()
  @Access('accounts:read', { account: 'accountId' })
  @ApiErrors(400, { status: 404, message: 'Account not found' })
  list(
    @CurrentAccountId(UuidOr404('Account not found')) id: string,
    @Query() query: PageQueryDto,
  ): Promise<ReceivedGrantListDto> {
    return this.grantsService.listReceived(id, query);
  }

  /** List grants that an account gave. For its servers, connections and namespaces, newest first. */
  @Get('given')
  @Access('accounts:read', { account: 'accountId' })
  @ApiErrors(400, { status: 404, message: 'Account not found' })
  listGiven(
    @CurrentAccountId(UuidOr404('Account not found')) id: string,
    @Query() query: PageQueryDto,
  ): Promise<GivenGrantListDto> {
    return this.grantsService.listGiven(id, query);
  }
}
