import { Controller, Delete, Get, HttpCode, Param, Post, Put, Query } from '@nestjs/common';
import { ApiParam, ApiTags } from '@nestjs/swagger';
import { ApiErrors } from '../../platform/http/api-docs.decorators.js';
import { Access, CurrentCaller, CurrentNamespace } from '../auth/access.decorator.js';
import type { Caller, OwnedNamespace } from '../auth/access.types.js';
import { ForbiddenError } from '../../platform/errors/domain-error.js';
import { DeletedNamespaceDto, NamespaceDto, NamespaceListDto, NamespaceQueryDto } from './namespace.dto.js';
import { NamespaceNotFoundError } from './namespaces.errors.js';
import { NamespacesService } from './namespaces.service.js';

const nameParam = {
  name: 'name',
  description: 'The namespace: 3 to 39 lower-case letters, digits and hyphens.',
  example: 'acme',
};

@ApiTags('Namespaces')
@Controller('namespaces')
export class NamespacesController {
  constructor(private readonly namespaces: NamespacesService) {}

  /** Claim a namespace. Claiming your own again changes nothing and answers the same. */
  @Put(':name')
  @HttpCode(201)
  @ApiParam(nameParam)
  @Access('namespaces:write')
  @ApiErrors(400, {
    status: 409,
    message: 'The namespace "acme" already exists and belongs to another account',
  })
  claim(@Param('name') name: string, @CurrentCaller() caller: Caller): Promise<NamespaceDto> {
    return this.namespaces.claim(name, caller);
  }

  /** Create a namespace with a generated name. */
  @Post()
  @Access('namespaces:write')
  @ApiErrors()
  create(@CurrentCaller() caller: Caller): Promise<NamespaceDto> {
    return this.namespaces.create(caller);
  }

  /** List your namespaces. Newest first. With `q`, `ownerId`, `hasServers` or `hasSkills`: search everybody's, by name. */
  @Get()
  @Access('namespaces:read')
  @ApiErrors(400)
  list(@Query() query: NamespaceQueryDto, @CurrentCaller() caller: Caller): Promise<NamespaceListDto> {
    return this.namespaces.list(caller, query);
  }

  /**
   * Delete a namespace that holds no servers. Its skills and connections go with it. Spec 4.13.
   */
  @Delete(':name')
  @ApiParam(nameParam)
  @Access('namespaces:write', {
    owner: 'name',
    missing: () => new NamespaceNotFoundError(),
    // Spec 4.13 fixes the text.
    foreign: () => new ForbiddenError('Unauthorized'),
  })
  @ApiErrors(
    { status: 403, message: 'Unauthorized' },
    { status: 404, message: 'Namespace not found' },
    {
      status: 409,
      text: 'The namespace still holds servers.',
      message: 'The namespace "acme" still holds servers: delete them first',
    },
  )
  remove(@CurrentNamespace() namespace: OwnedNamespace): Promise<DeletedNamespaceDto> {
    return this.namespaces.remove(namespace);
  }
}
