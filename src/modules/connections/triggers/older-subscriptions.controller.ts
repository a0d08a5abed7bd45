import { Controller, Delete, Get, Param, Post } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { Access, CurrentNamespace } from '../../auth/access.decorator.js';
import type { OwnedNamespace } from '../../auth/access.types.js';
import { ConnectionHandles } from '../core/connection-handles.js';
import { ownConnections } from '../core/connections.access.js';
import { ResourceNotFoundError } from '../core/connections.errors.js';

/**
 * The subscriptions of older command line tools, whose events the service sent itself: always none. Triggers replaced them.
 */
@ApiExcludeController()
@Controller('connect/:namespace')
export class OlderSubscriptionsController {
  constructor(private readonly handles: ConnectionHandles) {}

  @Get('.subscriptions')
  @Access('connections:read', ownConnections)
  list(): [] {
    return [];
  }

  @Get(':connectionId/.subscriptions')
  @Access('connections:read', ownConnections)
  async listOfConnection(
    @CurrentNamespace() namespace: OwnedNamespace,
    @Param('connectionId') id: string,
  ): Promise<[]> {
    await this.handles.target(namespace, id);
    return [];
  }

  @Post(['.subscriptions', ':connectionId/.subscriptions'])
  @Access('connections:execute', ownConnections)
  create(): never {
    throw new ResourceNotFoundError();
  }

  @Delete(['.subscriptions/:id', ':connectionId/.subscriptions/:id'])
  @Access('connections:execute', ownConnections)
  remove(): never {
    throw new ResourceNotFoundError();
  }
}
