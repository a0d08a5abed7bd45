import { Body, Controller, Delete, Get, HttpCode, Param, Patch, Post, Put, Query } from '@nestjs/common';
import { ApiBody, ApiParam, ApiTags } from '#api-docs';
import { ApiErrors } from '../../platform/http/api-docs.decorators.js';
import { Access, CurrentCaller, CurrentNamespace } from '../auth/access.decorator.js';
import type { Caller, OwnedNamespace } from '../auth/access.types.js';
import { ForbiddenError } from '../../platform/errors/domain-error.js';
import { SuccessDto } from '../../platform/http/success.dto.js';
import { SuspensionDto } from '../auth/suspension.types.js';
import {
  ClaimNamespaceDto,
  DeletedNamespaceDto,
  NamespaceDto,
  NamespaceListDto,
  NamespaceQueryDto,
  MoveNamespaceDto,
  TransferredAccountDto,
} from './namespace.dto.js';
import { NamespaceNotFoundError } from './namespaces.errors.js';
import { NamespacesService } from './namespaces.service.js';

/** Terms for the owner of a namespace, or the owners of the organization that it belongs to. */
const ownersOnly = {
  owner: 'name',
  may: 'own',
  missing: () => new NamespaceNotFoundError(),
  // Spec 4.13 fixes the text.
  foreign: () => new ForbiddenError('Unauthorized'),
} as const;

const nameParam = {
  name: 'name',
  description: 'The namespace: 3 to 39 lower-case letters, digits and hyphens.',
  example: 'acme',
};

@ApiTags('Namespaces')
@Controller('namespaces')
export class NamespacesController {
  constructor(private readonly namespacesService: NamespacesService) {}

  /** Claim a namespace, for yourself or an organization. Claiming it again changes nothing and returns the same response. */
  @Put(':name')
  @HttpCode(201)
  @ApiParam(nameParam)
  @ApiBody({ type: ClaimNamespaceDto, required: false, examples: { own: { value: {} } } })
  @Access('namespaces:write')
  @ApiErrors(400, 403, { status: 409, message: 'The namespace "acme" already exists and belongs to another account' })
  claim(
    @Param('name') name: string,
    @CurrentCaller() caller: Caller,
    @Body() { organizationId }: ClaimNamespaceDto,
  ): Promise<NamespaceDto> {
    return this.namespacesService.claim(name, caller, organizationId);
  }

  /** Create a namespace with a generated name. */
  @Post()
  @Access('namespaces:write')
  @ApiErrors()
  create(@CurrentCaller() caller: Caller): Promise<NamespaceDto> {
    return this.namespacesService.create(caller);
  }

  /** List your namespaces and those of your organizations. Newest first. With `q`, `ownerId`, `hasServers` or `hasSkills`: search everybody's, by name. */
  @Get()
  @Access('namespaces:read')
  @ApiErrors(400)
  list(@Query() query: NamespaceQueryDto, @CurrentCaller() caller: Caller): Promise<NamespaceListDto> {
    return this.namespacesService.list(caller, query);
  }

  /** Suspend or reinstate a namespace (operator). Within 5 seconds, calls in a suspended namespace return 403 with the reason. */
  @Put(':name/suspension')
  @ApiParam(nameParam)
  @Access('namespaces:write', { operator: true })
  @ApiErrors(400, 403, { status: 404, message: 'Namespace not found' })
  suspend(
    @Param('name') name: string,
    @CurrentCaller() caller: Caller,
    @Body() { reason }: SuspensionDto,
  ): Promise<SuccessDto> {
    return this.namespacesService.suspend(name, caller, reason);
  }

  /**
   * Move a namespace to another of your accounts. Its servers, skills and connections move too. Slipway closes its streams and
   * revokes the upstream logins of its connections.
   */
  @Patch(':name')
  @ApiParam(nameParam)
  @Access('namespaces:write', ownersOnly)
  @ApiErrors(400, { status: 403, message: 'Unauthorized' }, { status: 404, message: 'Namespace not found' })
  move(
    @Param('name') name: string,
    @CurrentCaller() caller: Caller,
    @Body() { organizationId, accountId = organizationId ?? '' }: MoveNamespaceDto,
  ): Promise<TransferredAccountDto> {
    return this.namespacesService.moveOne(caller, name, accountId);
  }

  /**
   * Delete a namespace that holds no servers. Its skills and connections go with it. Spec 4.13.
   */
  @Delete(':name')
  @ApiParam(nameParam)
  @Access('namespaces:write', ownersOnly)
  @ApiErrors(
    { status: 403, message: 'Unauthorized' },
    { status: 404, message: 'Namespace not found' },
    {
      status: 409,
      text: 'The namespace still holds servers.',
      message: 'The namespace "acme" still holds servers: delete them first',
    },
  )
  remove(@CurrentCaller() caller: Caller, @CurrentNamespace() namespace: OwnedNamespace): Promise<DeletedNamespaceDto> {
    return this.namespacesService.remove(caller, namespace);
  }
}
