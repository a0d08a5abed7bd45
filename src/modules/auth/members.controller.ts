import { Body, Controller, Delete, Get, HttpCode, Param, Put, Query, Res } from '@nestjs/common';
import { ApiAcceptedResponse, ApiOkResponse, ApiParam, ApiTags } from '#api-docs';
import type { Response } from 'express';
import { ApiErrors } from '../../platform/http/api-docs.decorators.js';
import { UuidOr404 } from '../../platform/http/input.pipe.js';
import { PageQueryDto } from '../../platform/http/pagination.dto.js';
import { Access, CurrentAccountId, CurrentCaller } from './access.decorator.js';
import type { Caller } from './access.types.js';
import {
  MemberDto,
  MemberInvitationDto,
  MemberListDto,
  RemovedMemberDto,
  RemoveMemberQueryDto,
  SetMemberDto,
} from './member.dto.js';
import { MembersService } from './members.service.js';

const accountIdParam = {
  name: 'accountId',
  description: "The member's account id.",
  example: '4f1f2f54-8f8c-4a8e-9d0e-3c1f1b0a2d11',
};

const accountMissing = { status: 404, message: 'Account not found' };

const lastOwner = {
  status: 409,
  text: 'The last owner, a limit, or an account that is not an organization.',
  message: 'An organization keeps an owner: make another member an owner first',
};

@ApiTags('Accounts and API keys')
@Controller('accounts/:organizationId/members')
export class MembersController {
  constructor(private readonly membersService: MembersService) {}

  /** List members of an organization. Sorted by name, for every role except guests. */
  @Get()
  @Access('accounts:read', { account: 'organizationId', may: 'own', member: true })
  @ApiErrors(400, 403, accountMissing)
  list(
    @CurrentCaller() caller: Caller,
    @CurrentAccountId(UuidOr404('Account not found')) id: string,
    @Query() query: PageQueryDto,
  ): Promise<MemberListDto> {
    return this.membersService.list(caller, id, query);
  }

  /**
   * Set the role of a member of an organization. An account that is not a member is invited, and accepts or declines within 72
   * hours. The operator adds an account immediately. The first member must be an owner. Adding that member revokes the password and
   * the logins of the organization: from then on, each member signs in as themselves.
   */
  @Put(':accountId')
  @ApiParam(accountIdParam)
  @Access('accounts:write', { account: 'organizationId', may: 'own' })
  @ApiOkResponse({ type: MemberDto, description: 'The account is a member, and has this role now.' })
  @ApiAcceptedResponse({ type: MemberInvitationDto, description: 'The account is invited.' })
  @ApiErrors(400, 403, accountMissing, lastOwner)
  async set(
    @CurrentCaller() caller: Caller,
    @CurrentAccountId(UuidOr404('Account not found')) id: string,
    @Param('accountId', UuidOr404('Account not found')) accountId: string,
    @Body() { role }: SetMemberDto,
    @Res({ passthrough: true }) response: Response,
  ): Promise<MemberDto | MemberInvitationDto> {
    const set = await this.membersService.set(caller, id, accountId, role);
    if ('expiresAt' in set) response.status(202);
    return set;
  }

  /**
   * Remove a member or an invited account from an organization. Members can also remove themselves. Their streams close within 5 seconds in every process.
   * The answer lists the API keys of the organization that it made, which go on working without `revokeKeys=true`.
   */
  @Delete(':accountId')
  @HttpCode(200)
  @ApiParam(accountIdParam)
  @Access('accounts:write', { account: 'organizationId', may: 'own', member: true })
  @ApiErrors(400, 403, { status: 404, message: 'Member not found' }, lastOwner)
  remove(
    @CurrentCaller() caller: Caller,
    @CurrentAccountId(UuidOr404('Account not found')) organizationId: string,
    @Param('accountId', UuidOr404('Member not found')) accountId: string,
    @Query() { revokeKeys = false }: RemoveMemberQueryDto,
  ): Promise<RemovedMemberDto> {
    return this.membersService.remove(caller, { organizationId, accountId, revokeKeys });
  }
}
