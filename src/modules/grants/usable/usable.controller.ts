import { Controller, Get, Query } from '@nestjs/common';
import { ApiTags } from '#api-docs';
import { ApiErrors } from '../../../platform/http/api-docs.decorators.js';
import { Access, CurrentCaller } from '../../auth/access.decorator.js';
import type { Caller } from '../../auth/access.types.js';
import { UsableListDto, UsableQueryDto } from './usable.dto.js';
import { UsableService } from './usable.service.js';

@ApiTags('Accounts and API keys')
@Controller('accounts/me/usable')
export class UsableController {
  constructor(private readonly usableService: UsableService) {}

  /**
   * List the connections and servers that you may use. Each with what you may do, its state and your last use; one section at
   * a time, by address.
   */
  @Get()
  @Access('accounts:read')
  @ApiErrors(400)
  list(@CurrentCaller() caller: Caller, @Query() query: UsableQueryDto): Promise<UsableListDto> {
    return this.usableService.list(caller, query);
  }
}
