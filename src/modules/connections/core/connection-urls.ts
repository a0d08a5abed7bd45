import { Injectable } from '@nestjs/common';
import { Env } from '../../../config/env.js';
import { SetupLinksService } from '../../oauth/setup/setup-links.service.js';
import type { LinkHolder } from '../../oauth/setup/setup.types.js';
import { ServerUrlsService } from '../../servers/server-urls.service.js';
import { CONNECTION_LINKS } from './connections.access.js';
import { nextStepOf, type StatusReason } from './connection-status.js';

@Injectable()
export class ConnectionUrls {
  constructor(
    private readonly serverUrlsService: ServerUrlsService,
    private readonly setupLinksService: SetupLinksService,
    private readonly env: Env,
  ) {}

  nextStep(reason: StatusReason): string | null {
    return nextStepOf(reason, this.env.baseUrl);
  }

  run(slug: string): string {
    return this.serverUrlsService.run(slug);
  }

  /** Returns the link of the setup page, valid while the row has this epoch. */
  setup(id: string, epoch: number, holder: LinkHolder): string {
    return this.setupLinksService.url({ kind: CONNECTION_LINKS, id, epoch, holder });
  }

  /** Works like {@link setup}, but the link opens only for a user signed in as the holder. */
  personSetup(id: string, epoch: number, holder: LinkHolder): Promise<string> {
    return this.setupLinksService.personUrl({ kind: CONNECTION_LINKS, id, epoch, holder });
  }
}
