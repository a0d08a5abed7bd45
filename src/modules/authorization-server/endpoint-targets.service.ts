import { Injectable } from '@nestjs/common';
import { AccessService } from '../auth/access.service.js';
import { callerFor } from '../auth/access.types.js';
import type { McpEndpoint } from '../auth/mcp-endpoint.access.js';
import { AuthorizationServerRepository } from './authorization-server.repository.js';
import type { EndpointTarget } from './authorization-server.types.js';

/** Finds what the MCP endpoints lead to, for people who may call it. */
@Injectable()
export class EndpointTargets {
  constructor(
    private readonly rows: AuthorizationServerRepository,
    private readonly access: AccessService,
  ) {}

  /** The target of an endpoint; null where there is none, or the account may not call it: the two look alike. */
  async find(endpoint: McpEndpoint, accountId: string): Promise<EndpointTarget | null> {
    const target = await this.rows.findTarget(endpoint, accountId);
    return target && this.access.may(callerFor(accountId), 'call', target) ? target : null;
  }
}
