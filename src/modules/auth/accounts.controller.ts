import { Body, Controller, Delete, Get, Header, HttpCode, Param, Patch, Post, Put, Query } from '@nestjs/common';
import { ApiBody, ApiParam, ApiTags } from '#api-docs';
import { ApiErrors } from '../../platform/http/api-docs.decorators.js';
import { SuccessDto } from '../../platform/http/success.dto.js';
import { UuidOr404 } from '../../platform/http/input.pipe.js';
import { Access, CurrentAccountId, CurrentCaller } from './access.decorator.js';
import type { Caller } from './access.types.js';
import {
  AccessDto,
  AccountDto,
  AccountListDto,
  AccountsQueryDto,
  AccountUsageDto,
  ApiKeyListDto,
  CreateAccountDto,
  CreateApiKeyDto,
  CreatedApiKeyDto,
  RevokeApiKeyQueryDto,
  RevokedApiKeysDto,
  RotateApiKeyDto,
  SetAccountLimitsDto,
  TimeZoneDto,
  UpdateAccountDto,
} from './account.dto.js';
import { MembershipListDto } from './member.dto.js';
import { MembersService } from './members.service.js';
import { AccountLimitsService } from './account-limits.service.js';
import { AccountsService } from './accounts.service.js';
import { ApiKeysService } from './api-keys.service.js';

const keyIdParam = { name: 'keyId', description: "The key's id.", example: '0b5c7f7e-6c0f-4a77-9d5c-2f5b8d3f6a10' };

const REPLACED_EXAMPLE = 'This API key was replaced by 7c9e6679-7425-40de-944b-e07fc1f90ae7: rotate that one';

/** The operator manages all accounts and keys, an account its own keys. */
@ApiTags('Accounts and API keys')
@Controller('accounts')
export class AccountsController {
  constructor(
    private readonly accountsService: AccountsService,
    private readonly apiKeysService: ApiKeysService,
    private readonly accountLimitsService: AccountLimitsService,
    private readonly membersService: MembersService,
  ) {}

  /** Get the account of the API key. */
  @Get('me')
  @Access('accounts:read')
  @ApiErrors()
  me(@CurrentCaller() caller: Caller): Promise<AccountDto> {
    return this.accountsService.get(caller.accountId);
  }

  /** Describe the permissions of the API key of the request. Needs no scope. */
  @Get('me/access')
  @Access('accounts:read')
  @ApiErrors()
  access(@CurrentCaller() caller: Caller): Promise<AccessDto> {
    return this.apiKeysService.accessOf(caller);
  }

  /** Set the time zone of the pages of your account. */
  @Put('me/time-zone')
  @Access('accounts:write')
  @ApiErrors(400)
  setTimeZone(@CurrentCaller() caller: Caller, @Body() body: TimeZoneDto): Promise<AccountDto> {
    return this.accountsService.setTimeZone(caller, body);
  }

  /**
   * Create an account (operator).
   *
   * An account with a limit `organizations` above 0 creates organizations too, and becomes their owner.
   */
  @Post()
  @Access('accounts:write', { operator: true, founders: true })
  @ApiErrors(400, 403, 409, 429)
  create(@CurrentCaller() caller: Caller, @Body() body: CreateAccountDto): Promise<AccountDto> {
    return this.accountsService.create(caller, body);
  }

  /** List accounts (operator), newest first. Each account has the time of its last use. */
  @Get()
  @Access('accounts:read', { operator: true })
  @ApiErrors(400, 403)
  list(@Query() query: AccountsQueryDto): Promise<AccountListDto> {
    return this.accountsService.list(query);
  }

  /**
   * Update an account (operator). Disables or enables it, or changes its operator role. Within 5 seconds, every process
   * rejects the API keys of a disabled account and revokes its sessions and invitations. The account of an operator cannot be
   * disabled, and the last operator keeps the role.
   */
  @Patch(':accountId')
  @ApiBody({
    type: UpdateAccountDto,
    examples: { disabled: { value: { disabled: true } }, operator: { value: { isOperator: true } } },
  })
  @Access('accounts:write', { account: 'accountId', operator: true })
  @ApiErrors(
    400,
    403,
    { status: 404, message: 'Account not found' },
    {
      status: 409,
      text: 'An operator that shall be disabled, or the last operator.',
      message: 'The account of an operator cannot be disabled',
    },
  )
  update(
    @CurrentCaller() caller: Caller,
    @CurrentAccountId(UuidOr404('Account not found')) id: string,
    @Body() body: UpdateAccountDto,
  ): Promise<AccountDto> {
    return this.accountsService.update(caller, id, body);
  }

  /**
   * Delete an account that owns no namespaces. Its API keys, logins and memberships go with it. An owner deletes its organization,
   * and the operator any account. The last owner of an organization and the last operator stay.
   */
  @Delete(':accountId')
  @HttpCode(200)
  @Access('accounts:write', { account: 'accountId', may: 'own' })
  @ApiErrors(
    403,
    { status: 404, message: 'Account not found' },
    {
      status: 409,
      text: 'It owns namespaces, or is the last owner of an organization or the last operator.',
      message: 'The account owns namespaces: acme. Transfer or delete them first',
    },
  )
  remove(
    @CurrentCaller() caller: Caller,
    @CurrentAccountId(UuidOr404('Account not found')) id: string,
  ): Promise<SuccessDto> {
    return this.accountsService.remove(caller, id);
  }

  /** List organizations of an account, sorted by name. Each has the role of the account. */
  @Get(':accountId/memberships')
  @Access('accounts:read', { account: 'accountId' })
  @ApiErrors({ status: 404, message: 'Account not found' })
  memberships(@CurrentAccountId(UuidOr404('Account not found')) id: string): Promise<MembershipListDto> {
    return this.membersService.organizationsOf(id);
  }

  /** Get the limits of an account, and what it uses of them. */
  @Get(':accountId/usage')
  @Access('accounts:read', { account: 'accountId' })
  @ApiErrors({ status: 404, message: 'Account not found' })
  usage(@CurrentAccountId(UuidOr404('Account not found')) id: string): Promise<AccountUsageDto> {
    return this.accountLimitsService.usage(id);
  }

  /** Set limits of an account (operator). */
  @Patch(':accountId/limits')
  @Access('accounts:write', { account: 'accountId', operator: true })
  @ApiErrors(400, 403, { status: 404, message: 'Account not found' })
  setLimits(
    @CurrentCaller() caller: Caller,
    @CurrentAccountId(UuidOr404('Account not found')) id: string,
    @Body() { limits }: SetAccountLimitsDto,
  ): Promise<AccountUsageDto> {
    return this.accountLimitsService.set(caller, id, limits);
  }

  /**
   * Create an API key for an account. Only this response contains the key. A key cannot create a key with broader
   * scopes than its own (403).
   */
  @Post(':accountId/api-keys')
  @Header('cache-control', 'no-store')
  @Access('accounts:write', { account: 'accountId', may: 'own' })
  @ApiErrors(400, { status: 404, message: 'Account not found' })
  createKey(
    @CurrentCaller() caller: Caller,
    @CurrentAccountId(UuidOr404('Account not found')) id: string,
    @Body() body: CreateApiKeyDto,
  ): Promise<CreatedApiKeyDto> {
    return this.apiKeysService.create(caller, id, body);
  }

  /** List an account's API keys. Newest first, without the keys themselves. */
  @Get(':accountId/api-keys')
  @Access('accounts:read', { account: 'accountId' })
  @ApiErrors({ status: 404, message: 'Account not found' })
  listKeys(@CurrentAccountId(UuidOr404('Account not found')) id: string): Promise<ApiKeyListDto> {
    return this.apiKeysService.list(id);
  }

  /**
   * Rotate an API key. The new key has the same name and scopes, and only this response contains it. The old key remains valid
   * for `overlapSeconds`, and its `replacedBy` names the new one.
   */
  @Post(':accountId/api-keys/:keyId/rotate')
  @Header('cache-control', 'no-store')
  @ApiParam(keyIdParam)
  @Access('accounts:write', { account: 'accountId', may: 'own' })
  @ApiErrors(
    400,
    { status: 404, message: 'API key not found' },
    { status: 409, text: 'The key has been replaced already.', message: REPLACED_EXAMPLE },
  )
  rotateKey(
    @CurrentCaller() caller: Caller,
    @CurrentAccountId(UuidOr404('Account not found')) id: string,
    @Param('keyId', UuidOr404('API key not found')) keyId: string,
    @Body() body: RotateApiKeyDto,
  ): Promise<CreatedApiKeyDto> {
    return this.apiKeysService.rotate(caller, id, keyId, body);
  }

  /**
   * Revoke an API key. It stops working everywhere within 5 seconds. With `made=true` this also revokes the keys, unused
   * invitations, grants, members and operators that were created with it, even if the key itself was revoked before. The operator
   * revokes those of all accounts, an owner those of an organization. The key of the request may be one of them.
   */
  @Delete(':accountId/api-keys/:keyId')
  @HttpCode(200)
  @ApiParam(keyIdParam)
  @Access('accounts:write', { account: 'accountId', may: 'own' })
  @ApiErrors(400, { status: 404, message: 'API key not found' })
  async revokeKey(
    @CurrentCaller() caller: Caller,
    @CurrentAccountId(UuidOr404('Account not found')) id: string,
    @Param('keyId', UuidOr404('API key not found')) keyId: string,
    @Query() query: RevokeApiKeyQueryDto,
  ): Promise<RevokedApiKeysDto> {
    const endMembers = (keyIds: string[]) => this.membersService.removeAddedBy(caller, id, keyIds);
    return { success: true, revoked: await this.apiKeysService.revoke(caller, id, keyId, query, endMembers) };
  }
}
