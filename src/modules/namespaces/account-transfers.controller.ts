import { Body, Controller, HttpCode, Post } from '@nestjs/common';
import { ApiTags } from '#api-docs';
import { ApiErrors } from '../../platform/http/api-docs.decorators.js';
import { UuidOr404 } from '../../platform/http/input.pipe.js';
import { Access, CurrentAccountId, CurrentCaller } from '../auth/access.decorator.js';
import type { Caller } from '../auth/access.types.js';
import { TransferAccountDto, TransferredAccountDto } from './namespace.dto.js';
import { NamespacesService } from './namespaces.service.js';

@ApiTags('Accounts and API keys')
@Controller('accounts/:accountId/transfer')
export class AccountTransfersController {
  constructor(private readonly namespacesService: NamespacesService) {}

  /**
   * Move all namespaces of an account to another one. Their servers, skills and connections move too: to an organization where you
   * are an owner, or as the operator to every account. Streams end, and upstream logins of connections are revoked.
   */
  @Post()
  @HttpCode(200)
  @Access('accounts:write', { account: 'accountId', may: 'own' })
  @ApiErrors(
    400,
    403,
    { status: 404, message: 'Account not found' },
    { status: 429, message: 'This account is at its limit' },
  )
  transfer(
    @CurrentAccountId(UuidOr404('Account not found')) from: string,
    @CurrentCaller() caller: Caller,
    @Body() { to }: TransferAccountDto,
  ): Promise<TransferredAccountDto> {
    return this.namespacesService.move(caller, from, to, null);
  }
}
