import { Body, Controller, Get, HttpCode, Param, Post, Query, Res } from '@nestjs/common';
import { ApiBody, ApiCreatedResponse, ApiOkResponse, ApiParam, ApiTags } from '#api-docs';
import type { Response } from 'express';
import { ApiErrors } from '../../platform/http/api-docs.decorators.js';
import { UuidOr404 } from '../../platform/http/input.pipe.js';
import { PageQueryDto } from '../../platform/http/pagination.dto.js';
import { Access, CurrentAccountId, CurrentCaller } from '../auth/access.decorator.js';
import type { Caller } from '../auth/access.types.js';
import { ownServerOrNone, qualifiedNameParam, serverNotFound, TargetServer } from '../servers/server.decorator.js';
import type { ServerRef } from '../servers/server.types.js';
import {
  AccessRequestDto,
  AccessRequestListDto,
  AccessRequestQueryDto,
  AskForAccessDto,
  DecideAccessRequestDto,
} from './access-request.dto.js';
import { membersOnly } from './grants.docs.js';
import { AccessRequestsService } from './access-requests.service.js';

@ApiTags('Grants')
@Controller()
export class AccessRequestsController {
  constructor(private readonly accessRequestsService: AccessRequestsService) {}

  /**
   * Request access to a server from its owner. An account has at most one open request for a server, which is deleted after 30
   * days, and can make 20 requests a day.
   */
  @Post('servers/:qualifiedName/access-requests')
  @ApiParam(qualifiedNameParam)
  @Access('servers:write')
  @ApiOkResponse({ type: AccessRequestDto, description: 'The account has this open request.' })
  @ApiCreatedResponse({ type: AccessRequestDto, description: 'Asked.' })
  @ApiErrors(400, serverNotFound, {
    status: 409,
    text: 'The server belongs to the account.',
    message: 'The server is your own: you need no access to it',
  })
  async ask(
    @TargetServer() server: ServerRef,
    @CurrentCaller() caller: Caller,
    @Body() { text }: AskForAccessDto,
    @Res({ passthrough: true }) response: Response,
  ): Promise<AccessRequestDto> {
    const { created, request } = await this.accessRequestsService.requestAccess(caller, server, text);
    response.status(created ? 201 : 200);
    return request;
  }

  /** List the requests for access to a server. Newest first. */
  @Get('servers/:qualifiedName/access-requests')
  @ApiParam(qualifiedNameParam)
  @Access('servers:write', ownServerOrNone)
  @ApiErrors(400, serverNotFound)
  list(@TargetServer() { id: serverId }: ServerRef, @Query() query: PageQueryDto): Promise<AccessRequestListDto> {
    return this.accessRequestsService.list({ serverId }, query);
  }

  /** Decide a request for access. A caller that can grant the server approves the request, or declines it with a reason. */
  @Post('servers/:qualifiedName/access-requests/:requestId')
  @HttpCode(200)
  @ApiParam(qualifiedNameParam)
  @ApiParam({ name: 'requestId', description: "The request's id.", example: '7c9e6679-7425-40de-944b-e07fc1f90ae7' })
  @ApiBody({
    type: DecideAccessRequestDto,
    examples: {
      grant: { value: { grant: { level: 'call' } } },
      'some tools': {
        value: { grant: { level: 'call', tools: { allow: ['search'] }, expiresAt: '2027-11-20T00:00:00.000Z' } },
      },
      refuse: { value: { refuse: 'Use acme/weather-public.' } },
    },
  })
  @Access('servers:write', ownServerOrNone)
  @ApiErrors(
    400,
    membersOnly,
    { status: 404, message: 'Access request not found' },
    { status: 409, message: 'The request was decided before' },
  )
  decide(
    @TargetServer() server: ServerRef,
    @CurrentCaller() caller: Caller,
    @Param('requestId', UuidOr404('Access request not found')) id: string,
    @Body() body: DecideAccessRequestDto,
  ): Promise<AccessRequestDto> {
    return this.accessRequestsService.decide(server, id, caller, body);
  }

  /**
   * List the requests for access of an account.
   *
   * Returns the requests that the account made, with the decisions, or those that it decides, newest first.
   */
  @Get('accounts/:accountId/access-requests')
  @Access('accounts:read', { account: 'accountId' })
  @ApiErrors(400, { status: 404, message: 'Account not found' })
  listOwn(
    @CurrentAccountId(UuidOr404('Account not found')) accountId: string,
    @Query() { as: side, ...query }: AccessRequestQueryDto,
  ): Promise<AccessRequestListDto> {
    return this.accessRequestsService.list(side === 'decider' ? { deciderId: accountId } : { accountId }, query);
  }
}
