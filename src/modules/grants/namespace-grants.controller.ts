import { Body, Controller, Delete, Get, Param, Post, Query, Res } from '@nestjs/common';
import { ApiBody, ApiCreatedResponse, ApiOkResponse, ApiParam, ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { ApiErrors } from '../../platform/http/api-docs.decorators.js';
import { UuidOr404 } from '../../platform/http/input.pipe.js';
import { PageQueryDto } from '../../platform/http/pagination.dto.js';
import { SuccessDto } from '../../platform/http/success.dto.js';
import { Access, CurrentCaller, CurrentNamespace } from '../auth/access.decorator.js';
import type { Caller, OwnedNamespace } from '../auth/access.types.js';
import { NamespaceNotFoundError } from '../namespaces/namespaces.errors.js';
import { GrantDto, GrantListDto, SetGrantDto, WithdrawGrantQueryDto } from './grant.dto.js';
import { grantBody, grantIdParam, membersOnly, setGrantErrors } from './grants.docs.js';
import { GrantsService } from './grants.service.js';

const granters = { owner: 'name', own: true, missing: () => new NamespaceNotFoundError() } as const;

const targetOf = ({ id }: OwnedNamespace) => ({ kind: 'namespace', id }) as const;

/** Grants of all servers and connections of a namespace: its owner sees and changes them. */
@ApiTags('Grants')
@ApiParam({ name: 'name', description: 'The namespace.', example: 'acme' })
@Controller('namespaces/:name/grants')
export class NamespaceGrantsController {
  constructor(private readonly grantsService: GrantsService) {}

  /** Grant an account a namespace with all it contains. Another grant for the same account replaces the terms. */
  @Post()
  @ApiBody(grantBody)
  @Access('namespaces:write', granters)
  @ApiOkResponse({ type: GrantDto, description: 'The account had a grant, and has these terms now.' })
  @ApiCreatedResponse({ type: GrantDto, description: 'Granted.' })
  @ApiErrors(...setGrantErrors)
  async set(
    @CurrentNamespace() namespace: OwnedNamespace,
    @CurrentCaller() caller: Caller,
    @Body() body: SetGrantDto,
    @Res({ passthrough: true }) response: Response,
  ): Promise<GrantDto> {
    const missing = () => new NamespaceNotFoundError();
    const { created, grant } = await this.grantsService.set(targetOf(namespace), caller, body, missing);
    response.status(created ? 201 : 200);
    return grant;
  }

  /** List the grants of a namespace. Newest first. */
  @Get()
  @Access('namespaces:write', granters)
  @ApiErrors(400, { status: 404, message: 'Namespace not found' })
  list(@CurrentNamespace() namespace: OwnedNamespace, @Query() query: PageQueryDto): Promise<GrantListDto> {
    return this.grantsService.list(targetOf(namespace), query);
  }

  /** Withdraw a grant of a namespace. It stops working everywhere within 5 seconds. */
  @Delete(':grantId')
  @ApiParam(grantIdParam)
  @Access('namespaces:write', granters)
  @ApiErrors(400, membersOnly, { status: 404, message: 'Grant not found' })
  remove(
    @CurrentNamespace() namespace: OwnedNamespace,
    @CurrentCaller() caller: Caller,
    @Param('grantId', UuidOr404('Grant not found')) id: string,
    @Query() query: WithdrawGrantQueryDto,
  ): Promise<SuccessDto> {
    return this.grantsService.remove(targetOf(namespace), caller, id, query);
  }
}
