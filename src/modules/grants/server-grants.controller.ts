import { Body, Controller, Delete, Get, Param, Post, Query, Res } from '@nestjs/common';
import { ApiBody, ApiCreatedResponse, ApiOkResponse, ApiParam, ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { ApiErrors } from '../../platform/http/api-docs.decorators.js';
import { UuidOr404 } from '../../platform/http/input.pipe.js';
import { PageQueryDto } from '../../platform/http/pagination.dto.js';
import { SuccessDto } from '../../platform/http/success.dto.js';
import { Access, CurrentCaller } from '../auth/access.decorator.js';
import type { Caller } from '../auth/access.types.js';
import { ApiServerName, ownServerOrNone, serverNotFound, TargetServer } from '../servers/server.decorator.js';
import type { ServerRef } from '../servers/server.types.js';
import { ServerNotFoundError } from '../servers/servers.errors.js';
import { GrantDto, GrantListDto, SetGrantDto, WithdrawGrantQueryDto } from './grant.dto.js';
import { grantBody, grantIdParam, membersOnly, setGrantErrors } from './grants.docs.js';
import { GrantsService } from './grants.service.js';

const granters = { ...ownServerOrNone, own: true } as const;

const targetOf = ({ id }: ServerRef) => ({ kind: 'server', id }) as const;

/** Grants of a server: its owner sees and changes them; editors of an organization do so for its members. */
@ApiTags('Grants')
@ApiServerName()
@Controller('servers/:qualifiedName/grants')
export class ServerGrantsController {
  constructor(private readonly grantsService: GrantsService) {}

  /** Let another account use a server, or change its level. */
  @Post()
  @ApiBody(grantBody)
  @Access('servers:write', granters)
  @ApiOkResponse({ type: GrantDto, description: 'The account had a grant, and has this level now.' })
  @ApiCreatedResponse({ type: GrantDto, description: 'Granted.' })
  @ApiErrors(...setGrantErrors)
  async set(
    @TargetServer() server: ServerRef,
    @CurrentCaller() caller: Caller,
    @Body() body: SetGrantDto,
    @Res({ passthrough: true }) response: Response,
  ): Promise<GrantDto> {
    const missing = () => new ServerNotFoundError();
    const { created, grant } = await this.grantsService.set(targetOf(server), caller, body, missing);
    response.status(created ? 201 : 200);
    return grant;
  }

  /** List the grants of a server. Newest first. */
  @Get()
  @Access('servers:write', granters)
  @ApiErrors(400, serverNotFound)
  list(@TargetServer() server: ServerRef, @Query() query: PageQueryDto): Promise<GrantListDto> {
    return this.grantsService.list(targetOf(server), query);
  }

  /** Withdraw a grant of a server. It stops working everywhere within 5 seconds. */
  @Delete(':grantId')
  @ApiParam(grantIdParam)
  @Access('servers:write', granters)
  @ApiErrors(400, membersOnly, { status: 404, message: 'Grant not found' })
  remove(
    @TargetServer() server: ServerRef,
    @CurrentCaller() caller: Caller,
    @Param('grantId', UuidOr404('Grant not found')) id: string,
    @Query() query: WithdrawGrantQueryDto,
  ): Promise<SuccessDto> {
    return this.grantsService.remove(targetOf(server), caller, id, query);
  }
}
