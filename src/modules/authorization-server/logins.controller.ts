import { Controller, Delete, Get, HttpCode, Param, Query } from '@nestjs/common';
import { ApiParam, ApiTags } from '@nestjs/swagger';
import { ApiErrors } from '../../platform/http/api-docs.decorators.js';
import { UuidOr404 } from '../../platform/http/input.pipe.js';
import { PageQueryDto } from '../../platform/http/pagination.dto.js';
import { SuccessDto } from '../../platform/http/success.dto.js';
import { Access, CurrentAccountId, CurrentCaller } from '../auth/access.decorator.js';
import type { Caller } from '../auth/access.types.js';
import { LoginListDto } from './login.dto.js';
import { LoginsService } from './logins.service.js';

@ApiTags('Accounts and API keys')
@Controller('accounts/:accountId/logins')
export class LoginsController {
  constructor(private readonly loginsService: LoginsService) {}

  /** List the logins of an account. Newest first: browsers that are signed in, the password, and MCP clients that were let in. */
  @Get()
  @Access('accounts:read', { account: 'accountId' })
  @ApiErrors(400, { status: 404, message: 'Account not found' })
  list(
    @CurrentAccountId(UuidOr404('Account not found')) id: string,
    @Query() query: PageQueryDto,
  ): Promise<LoginListDto> {
    return this.loginsService.list(id, query);
  }

  /** End all logins of an account, the password included. Its API keys stay. */
  @Delete()
  @HttpCode(200)
  @Access('accounts:write', { account: 'accountId' })
  @ApiErrors({ status: 404, message: 'Account not found' })
  async endAll(
    @CurrentCaller() caller: Caller,
    @CurrentAccountId(UuidOr404('Account not found')) id: string,
  ): Promise<SuccessDto> {
    await this.loginsService.endAll(caller, id);
    return { success: true };
  }

  /**
   * End one login: it stops working everywhere within 5 seconds. The end of the password also ends all other logins; the
   * person needs an invitation to choose a new one.
   */
  @Delete(':loginId')
  @HttpCode(200)
  @ApiParam({ name: 'loginId', description: 'The id of a login, or `password`.', example: 'password' })
  @Access('accounts:write', { account: 'accountId' })
  @ApiErrors({ status: 404, message: 'Login not found' })
  async end(
    @CurrentCaller() caller: Caller,
    @CurrentAccountId(UuidOr404('Account not found')) id: string,
    @Param('loginId') loginId: string,
  ): Promise<SuccessDto> {
    await this.loginsService.revoke(caller, id, loginId);
    return { success: true };
  }
}
