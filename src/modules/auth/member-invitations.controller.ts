import { Controller, Delete, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import { ApiParam, ApiTags } from '#api-docs';
import { ApiErrors } from '../../platform/http/api-docs.decorators.js';
import { UuidOr404 } from '../../platform/http/input.pipe.js';
import { PageQueryDto } from '../../platform/http/pagination.dto.js';
import { SuccessDto } from '../../platform/http/success.dto.js';
import { Access, CurrentAccountId, CurrentCaller } from './access.decorator.js';
import type { Caller } from './access.types.js';
import { MemberInvitationListDto, MembershipDto } from './member.dto.js';
import { MembersService } from './members.service.js';

const invitationIdParam = {
  name: 'invitationId',
  description: "The invitation's id.",
  example: '0b5c7f7e-6c0f-4a77-9d5c-2f5b8d3f6a10',
};

const missing = { status: 404, message: 'Invitation not found' };

@ApiTags('Accounts and API keys')
@Controller('accounts')
export class MemberInvitationsController {
  constructor(private readonly membersService: MembersService) {}

  /**
   * List unused invitations of an account. For an organization, the accounts that it has invited and its links. Newest first,
   * without the secrets of links.
   */
  @Get(':accountId/invitations')
  @Access('accounts:read', { account: 'accountId' })
  @ApiErrors(400, { status: 404, message: 'Account not found' })
  list(
    @CurrentAccountId(UuidOr404('Account not found')) id: string,
    @Query() query: PageQueryDto,
  ): Promise<MemberInvitationListDto> {
    return this.membersService.invitations(id, query, true);
  }

  /** Accept an invitation into an organization. It must be for your own account, whose membership begins immediately. */
  @Post(':accountId/invitations/:invitationId')
  @HttpCode(200)
  @ApiParam(invitationIdParam)
  @Access('accounts:write', { account: 'accountId' })
  @ApiErrors(missing, {
    status: 409,
    text: 'A limit of the organization or of the account.',
    message: 'This account is a member of 100 organizations, as many as it may be',
  })
  accept(
    @CurrentCaller() { accountId }: Caller,
    @Param('invitationId', UuidOr404('Invitation not found')) id: string,
  ): Promise<MembershipDto> {
    return this.membersService.accept(accountId, id);
  }

  /** Decline an invitation into an organization. An owner of the organization can also revoke it, including an unused link. */
  @Delete(':accountId/invitations/:invitationId')
  @HttpCode(200)
  @ApiParam(invitationIdParam)
  @Access('accounts:write', { account: 'accountId', may: 'own' })
  @ApiErrors(missing)
  async decline(
    @CurrentCaller() caller: Caller,
    @CurrentAccountId(UuidOr404('Account not found')) accountId: string,
    @Param('invitationId', UuidOr404('Invitation not found')) id: string,
  ): Promise<SuccessDto> {
    await this.membersService.deleteInvitation(caller, accountId, id);
    return { success: true };
  }
}
