import { Injectable } from '@nestjs/common';
import { Env } from '../../../config/env.js';
import { SignedUrls } from '../../../platform/http/signed-urls.js';
import { ServerUrlsService } from '../../servers/server-urls.service.js';

/** The path of a connection's setup page: it opens while the epoch is the row's. */
export function setupPath(id: string, epoch: number): string {
  return `/setup/connections/${id}/${epoch}`;
}

/** The absolute URLs we hand out for a connection. */
@Injectable()
export class ConnectionUrls {
  constructor(
    private readonly servers: ServerUrlsService,
    private readonly links: SignedUrls,
    private readonly env: Env,
  ) {}

  /** The MCP address of a registry server. */
  run(slug: string): string {
    return this.servers.run(slug);
  }

  /** Where a person authorizes the connection or gives what it lacks; opens for OAUTH_SETUP_TTL_MINUTES at least. */
  setup(id: string, epoch: number): string {
    return this.links.sign(setupPath(id, epoch), 2 * 60 * this.env.oauthSetupTtlMinutes);
  }
}
