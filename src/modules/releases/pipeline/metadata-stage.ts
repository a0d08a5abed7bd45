import { Injectable } from '@nestjs/common';
import { ServerReleasesService } from '../../servers/server-releases.service.js';
import { ServerIconsService } from '../../servers/icons/server-icons.service.js';
import type { Release } from '../release.entity.js';
import type { ReleaseStage, StageOutcome } from '../stage-outcome.js';

/** Fills display name, description and icon from `serverInfo` where the server's owner left them empty. */
@Injectable()
export class MetadataStage implements ReleaseStage {
  constructor(
    private readonly servers: ServerReleasesService,
    private readonly icons: ServerIconsService,
  ) {}

  async run({ serverId, snapshot }: Release): Promise<StageOutcome> {
    const info = snapshot?.serverInfo ?? {};
    await this.icons.adopt(serverId, info.icons);
    const filled = await this.servers.emptyFields(serverId, info);
    const names = Object.keys(filled);
    const message = names.length === 0 ? 'Nothing to fill in' : `Filled in from the server: ${names.join(', ')}`;
    return {
      lines: [{ stage: 'metadata', level: 'info', message }],
      inTransaction: (tx) => this.servers.fillIn(serverId, filled, tx),
    };
  }
}
