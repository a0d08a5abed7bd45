import {
  Body,
  Controller,
  createParamDecorator,
  Delete,
  Get,
  Injectable,
  Param,
  Post,
  Query,
  Res,
  type ExecutionContext,
  type PipeTransform,
  type Type,
} from '@nestjs/common';
import { ApiBody, ApiCreatedResponse, ApiOkResponse, ApiOperation, ApiParam, ApiTags } from '#api-docs';
import type { Response } from 'express';
import { ApiErrors, type ApiError } from '../../platform/http/api-docs.decorators.js';
import { UuidOr404 } from '../../platform/http/input.pipe.js';
import { PageQueryDto } from '../../platform/http/pagination.dto.js';
import { SuccessDto } from '../../platform/http/success.dto.js';
import { Access, CurrentCaller, type GrantedRequest } from '../auth/access.decorator.js';
import type { AccessTerms, Caller, Scope } from '../auth/access.types.js';
import { connectionIdParam, namespaceParam, ownConnections } from '../connections/core/connections.access.js';
import { NamespaceNotFoundError } from '../namespaces/namespaces.errors.js';
import { ownServerOrNone, qualifiedNameParam, serverNotFound, toQualifiedName } from '../servers/server.decorator.js';
import { namespaceNamed, type Target, type TargetKind, type TargetName } from '../targets/target.types.js';
import { TargetsService } from '../targets/targets.service.js';
import { GrantDto, GrantListDto, SetGrantDto, WithdrawGrantQueryDto } from './grant.dto.js';
import { grantBody, grantIdParam, membersOnly, setGrantErrors } from './grants.docs.js';
import { GrantsService } from './grants.service.js';

interface GrantedKind {
  path: string;
  params: (typeof namespaceParam)[];
  scope: Scope;
  /** Rule for the grants of a target: its owner can see and change them; editors of an organization can do so for its members. */
  rule: AccessTerms & { missing: () => Error };
  /** The target that the route names. @throws the error for a name that nothing can have */
  nameIn: (params: Record<string, string>) => TargetName;
  notFound: ApiError;
  docs: { summary: string; description?: string };
}

const kinds: Record<TargetKind, GrantedKind> = {
  server: {
    path: 'servers/:qualifiedName/grants',
    params: [qualifiedNameParam],
    scope: 'servers:write',
    rule: { ...ownServerOrNone, may: 'administer' },
    nameIn: ({ qualifiedName = '' }) => ({ kind: 'server', ...toQualifiedName(qualifiedName) }),
    notFound: serverNotFound,
    docs: { summary: 'Let another account use a server, or change its level' },
  },
  connection: {
    path: 'connect/:namespace/:connectionId/grants',
    params: [connectionIdParam, namespaceParam],
    scope: 'connections:write',
    rule: { ...ownConnections, may: 'administer' },
    nameIn: ({ namespace = '', connectionId = '' }) => ({ kind: 'connection', namespace, name: connectionId }),
    notFound: 404,
    docs: { summary: 'Let another account use a connection, or change its level' },
  },
  namespace: {
    path: 'namespaces/:name/grants',
    params: [{ ...namespaceParam, name: 'name' }],
    scope: 'namespaces:write',
    rule: { owner: 'name', may: 'administer', missing: () => new NamespaceNotFoundError() },
    nameIn: ({ name = '' }) => namespaceNamed(name),
    notFound: { status: 404, message: 'Namespace not found' },
    docs: {
      summary: 'Grant an account a namespace with all it contains',
      description: 'Another grant for the same account replaces the terms.',
    },
  },
};

type TargetRequest = { params: Record<string, string> } & GrantedRequest;

/** Finds the target of a route, whose namespace the access rule has checked. */
@Injectable()
export class GrantTargetPipe implements PipeTransform<{ kind: TargetKind; request: TargetRequest }, Promise<Target>> {
  constructor(private readonly targetsService: TargetsService) {}

  /** @throws the `missing` error of the kind */
  async transform({ kind, request: { params, grant } }: { kind: TargetKind; request: TargetRequest }): Promise<Target> {
    const { nameIn, rule } = kinds[kind];
    const target = await this.targetsService.find(nameIn(params));
    // Owners are cached: meanwhile the namespace may have been deleted, and claimed by another account.
    if (target?.namespaceId !== grant.namespace?.id || target === null) throw rule.missing();
    return target;
  }
}

const OfRequest = createParamDecorator((kind: TargetKind, context: ExecutionContext) => ({
  kind,
  request: context.switchToHttp().getRequest<TargetRequest>(),
}));

function grantsOf(kind: TargetKind): Type {
  const { path, params, scope, rule, notFound, docs } = kinds[kind];

  @ApiTags('Grants')
  @Controller(path)
  class GrantsController {
    constructor(private readonly grantsService: GrantsService) {}

    @Post()
    @ApiOperation(docs)
    @ApiBody(grantBody)
    @Access(scope, rule)
    @ApiOkResponse({ type: GrantDto, description: 'The account had a grant, and has these terms now.' })
    @ApiCreatedResponse({ type: GrantDto, description: 'Granted.' })
    @ApiErrors(...setGrantErrors)
    async set(
      @OfRequest(kind, GrantTargetPipe) target: Target,
      @CurrentCaller() caller: Caller,
      @Body() body: SetGrantDto,
      @Res({ passthrough: true }) response: Response,
    ): Promise<GrantDto> {
      const { created, grant } = await this.grantsService.set(target, caller, body, rule.missing);
      response.status(created ? 201 : 200);
      return grant;
    }

    @Get()
    @ApiOperation({ summary: `List the grants of a ${kind}`, description: 'Newest first.' })
    @Access(scope, rule)
    @ApiOkResponse({ type: GrantListDto })
    @ApiErrors(400, notFound)
    list(@OfRequest(kind, GrantTargetPipe) target: Target, @Query() query: PageQueryDto): Promise<GrantListDto> {
      return this.grantsService.list(target, query);
    }

    @Delete(':grantId')
    @ApiOperation({
      summary: `Revoke a grant of a ${kind}`,
      description: 'It stops working everywhere within 5 seconds.',
    })
    @ApiParam(grantIdParam)
    @Access(scope, rule)
    @ApiOkResponse({ type: SuccessDto })
    @ApiErrors(400, membersOnly, { status: 404, message: 'Grant not found' })
    remove(
      @OfRequest(kind, GrantTargetPipe) target: Target,
      @CurrentCaller() caller: Caller,
      @Param('grantId', UuidOr404('Grant not found')) id: string,
      @Query() query: WithdrawGrantQueryDto,
    ): Promise<SuccessDto> {
      return this.grantsService.remove(target, caller, id, query);
    }
  }
  for (const param of params) ApiParam(param)(GrantsController);
  const name = `${kind[0]?.toUpperCase()}${kind.slice(1)}GrantsController`;
  return Object.defineProperty(GrantsController, 'name', { value: name });
}

export const grantsControllers: Type[] = [grantsOf('server'), grantsOf('connection'), grantsOf('namespace')];
