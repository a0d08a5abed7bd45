import { Controller, Delete, Get, Param, Post } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { Access, CurrentNamespace } from '../../auth/access.decorator.js';
import type { OwnedNamespace } from '../../auth/access.types.js';
import { ConnectionHandles } from '../core/connection-handles.js';
import { ownConnections } from '../core/connections.access.js';
import { ResourceNotFoundError } from '../core/connections.errors.js';

/**
 * Subscriptions as older command line tools know them, whose events the service sent itself: there are none, and none are
 * made. Triggers took their place.
 */
@ApiExcludeController()
@Controller('connect/:namespace')
export class OlderSubscriptionsController {
  constructor(private readonly links: ConnectionHandles) {}

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
    await this.links.target(namespace, id);
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
