import { Body, Delete, Get, Param, Post, Query, Res } from '@nestjs/common';
import { ApiBody, ApiCreatedResponse, ApiOkResponse, ApiParam, ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { ApiErrors } from '../../platform/http/api-docs.decorators.js';
import { UuidOr404 } from '../../platform/http/input.pipe.js';
import { PageQueryDto } from '../../platform/http/pagination.dto.js';
import { SuccessDto } from '../../platform/http/success.dto.js';
import { Access, CurrentCaller, CurrentNamespace } from '../auth/access.decorator.js';
import type { Caller, OwnedNamespace } from '../auth/access.types.js';
import { ConnectionController, ownConnections } from '../connections/core/connections.access.js';
import { ResourceNotFoundError } from '../connections/core/connections.errors.js';
import { GrantDto, GrantListDto, SetGrantDto, WithdrawGrantQueryDto } from './grant.dto.js';
import type { GrantTarget } from './grant.types.js';
import { grantBody, grantIdParam, membersOnly, setGrantErrors } from './grants.docs.js';
import { GrantsService } from './grants.service.js';

const granters = { ...ownConnections, own: true } as const;

/** Grants of a connection: its owner sees and changes them; editors of an organization do so for its members. */
@ApiTags('Grants')
@ConnectionController('grants')
export class ConnectionGrantsController {
  constructor(private readonly grantsService: GrantsService) {}

  /** Let another account use a connection, or change its level. */
  @Post()
  @ApiBody(grantBody)
  @Access('connections:write', granters)
  @ApiOkResponse({ type: GrantDto, description: 'The account had a grant, and has this level now.' })
  @ApiCreatedResponse({ type: GrantDto, description: 'Granted.' })
  @ApiErrors(...setGrantErrors)
  async set(
    @CurrentNamespace() namespace: OwnedNamespace,
    @Param('connectionId') connectionId: string,
    @CurrentCaller() caller: Caller,
    @Body() body: SetGrantDto,
    @Res({ passthrough: true }) response: Response,
  ): Promise<GrantDto> {
    const target = await this.target(namespace, connectionId);
    const missing = () => new ResourceNotFoundError();
    const { created, grant } = await this.grantsService.set(target, caller, body, missing);
    response.status(created ? 201 : 200);
    return grant;
  }

  /** List the grants of a connection. Newest first. */
  @Get()
  @Access('connections:write', granters)
  @ApiErrors(400, 404)
  async list(
    @CurrentNamespace() namespace: OwnedNamespace,
    @Param('connectionId') connectionId: string,
    @Query() query: PageQueryDto,
  ): Promise<GrantListDto> {
    return this.grantsService.list(await this.target(namespace, connectionId), query);
  }

  /** Withdraw a grant of a connection. It stops working everywhere within 5 seconds. */
  @Delete(':grantId')
  @ApiParam(grantIdParam)
  @Access('connections:write', granters)
  @ApiErrors(400, membersOnly, { status: 404, message: 'Grant not found' })
  async remove(
    @CurrentNamespace() namespace: OwnedNamespace,
    @Param('connectionId') connectionId: string,
    @CurrentCaller() caller: Caller,
    @Param('grantId', UuidOr404('Grant not found')) id: string,
    @Query() query: WithdrawGrantQueryDto,
  ): Promise<SuccessDto> {
    return this.grantsService.remove(await this.target(namespace, connectionId), caller, id, query);
  }

  private async target(namespace: OwnedNamespace, connectionId: string): Promise<GrantTarget> {
    const id = await this.grantsService.findConnection(namespace.id, connectionId);
    if (id === null) throw new ResourceNotFoundError();
    return { kind: 'connection', id };
  }
}
