import { Body, Controller, Header, Post } from '@nestjs/common';
import { ApiTags } from '#api-docs';
import { ApiErrors } from '../../platform/http/api-docs.decorators.js';
import { UuidOr404 } from '../../platform/http/input.pipe.js';
import { Access, CurrentAccountId, CurrentCaller } from '../auth/access.decorator.js';
import type { Caller } from '../auth/access.types.js';
import { InvitationDto, InviteMemberDto } from './invitation.dto.js';
import { InvitationsService } from './invitations.service.js';

@ApiTags('Accounts and API keys')
@Controller('accounts')
export class InvitationsController {
  constructor(private readonly invitationsService: InvitationsService) {}

  /**
   * Issue an invitation to set a password (operator). The user chooses the password of the account, or replaces
   * a forgotten one. Older unused links of the account are revoked. An API key cannot issue an invitation for its own account
   * (403): the holder of a leaked key could otherwise keep the account.
   */
  @Post(':accountId/invitations')
  @Header('cache-control', 'no-store')
  @Access('accounts:write', { account: 'accountId', operator: true })
  @ApiErrors(
    403,
    { status: 404, message: 'Account not found' },
    {
      status: 409,
      text: 'The account is disabled, or an organization with members.',
      message: 'The account is disabled: enable it first',
    },
  )
  create(
    @CurrentCaller() caller: Caller,
    @CurrentAccountId(UuidOr404('Account not found')) id: string,
  ): Promise<InvitationDto> {
    return this.invitationsService.create(id, caller);
  }

  /**
   * Issue an invitation to an organization (owners). The user joins with the account that is signed in, or with a new
   * one. The link is revoked when its creator is no longer an owner.
   */
  @Post(':organizationId/members/invitations')
  @Header('cache-control', 'no-store')
  @Access('accounts:write', { account: 'organizationId', may: 'own' })
  @ApiErrors(
    400,
    403,
    { status: 404, message: 'Account not found' },
    {
      status: 409,
      text: 'The account is not an organization, is disabled, or has no owner.',
      message:
        'Only an organization with an owner invites: add the first one with PUT /accounts/{organizationId}/members/{accountId}',
    },
  )
  inviteMember(
    @CurrentCaller() caller: Caller,
    @CurrentAccountId(UuidOr404('Account not found')) id: string,
    @Body() { role }: InviteMemberDto,
  ): Promise<InvitationDto> {
    return this.invitationsService.inviteMember(id, role, caller);
  }
}
