import { Controller, Get, Query } from '@nestjs/common';
import { ApiTags } from '#api-docs';
import { ApiErrors } from '../../platform/http/api-docs.decorators.js';
import { Access, CurrentCaller } from '../auth/access.decorator.js';
import type { Caller } from '../auth/access.types.js';
import { AccessCheckDto, AccessCheckQueryDto } from './access-check.dto.js';
import { AccessCheckService } from './access-check.service.js';

@ApiTags('Grants')
@Controller('access')
export class AccessCheckController {
  constructor(private readonly accessCheckService: AccessCheckService) {}

  /**
   * Check whether an account can call a target, and why. You can check your own account, every account for targets that you own,
   * and as operator all accounts. The response has no contents of targets.
   */
  @Get('check')
  @Access('accounts:read')
  @ApiErrors(400, 403, { status: 404, message: 'No account has this id or name' })
  check(@CurrentCaller() caller: Caller, @Query() query: AccessCheckQueryDto): Promise<AccessCheckDto> {
    return this.accessCheckService.check(caller, query);
  }
}
