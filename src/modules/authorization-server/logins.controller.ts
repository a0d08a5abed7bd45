import { Controller, Delete, Get, HttpCode, Param, Query } from '@nestjs/common';
import { ApiParam, ApiTags } from '#api-docs';
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

  /** List the logins of an account, newest first. They are signed-in browsers, the password, and authorized MCP clients. */
  @Get()
  @Access('accounts:read', { account: 'accountId' })
  @ApiErrors(400, { status: 404, message: 'Account not found' })
  list(
    @CurrentAccountId(UuidOr404('Account not found')) id: string,
    @Query() query: PageQueryDto,
  ): Promise<LoginListDto> {
    return this.loginsService.list(id, query);
  }

  /** Revoke all logins of an account, including the password. Its API keys remain valid. */
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
   * Revoke one login. Every process rejects it within 5 seconds. Revoking the password also revokes all other logins; the
   * user needs an invitation to choose a new password.
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
