import { Controller, Get, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
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
   * Tell if an account may call something, and why. Ask about your own account, or about every account for what you own; the
   * operator asks about all. Shows no contents.
   */
  @Get('check')
  @Access('accounts:read')
  @ApiErrors(400, 403, { status: 404, message: 'No account has this id or name' })
  check(@CurrentCaller() caller: Caller, @Query() query: AccessCheckQueryDto): Promise<AccessCheckDto> {
    return this.accessCheckService.check(caller, query);
  }
}
