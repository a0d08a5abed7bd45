import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { transactionOf } from '../../platform/database/actor.js';
import { ConflictError, InvalidInputError, NotFoundError } from '../../platform/errors/domain-error.js';
import { AccessService } from '../auth/access.service.js';
import type { Caller } from '../auth/access.types.js';
import { ServerReleasesService } from '../servers/server-releases.service.js';
import { ServerUrlsService } from '../servers/server-urls.service.js';
import type { ServerRef } from '../servers/server.types.js';
import type { ConfigSchema } from './config/config-fields.js';
import { type RequestedRescanDto, type ReleaseDto, type RescanDto } from './release.dto.js';
import { Release } from './release.entity.js';
import { ReleaseLogsRepository } from './release-log.repository.js';
import type { ReleaseStatus } from './release-state.js';
import { ReleaseSwitch } from './release-switch.js';
import { ReleasesRepository } from './releases.repository.js';
import { RELEASE_NOT_FOUND, ReleasesService } from './releases.service.js';
import { RescansService } from './rescan/rescans.service.js';
import { requireScanCredentials } from './scan/scan-credentials.js';

@Injectable()
export class CurrentReleaseService {
  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly releasesService: ReleasesService,
    private readonly releasesRepository: ReleasesRepository,
    private readonly releaseLogsRepository: ReleaseLogsRepository,
    private readonly serverReleasesService: ServerReleasesService,
    private readonly releaseSwitch: ReleaseSwitch,
    private readonly rescansService: RescansService,
    private readonly accessService: AccessService,
    private readonly serverUrlsService: ServerUrlsService,
  ) {}

  /**
   * Makes an earlier release current, without a new upload.
   *
   * @param id the release's id, or `latest`
   * @throws NotFoundError, ConflictError for a release that did not succeed
   */
  async promote(server: ServerRef, id: string, caller: Caller): Promise<ReleaseDto> {
    const { id: releaseId } = await this.releasesService.find(server, id);
    const release = await this.releasesRepository.findWith(releaseId, ['snapshot']);
    if (!release) throw new NotFoundError(RELEASE_NOT_FOUND);
    const { snapshot } = release;
    if (release.status !== 'SUCCESS' || snapshot === null) {
      throw new ConflictError(`Only a release that succeeded can become current: this one is ${release.status}`);
    }
    const compared = await this.releaseSwitch.compare(server.id, snapshot);
    const message = `Promoted by the key ${JSON.stringify(await this.accessService.keyName(caller))}`;
    await transactionOf(this.database, caller, async (tx) => {
      if (compared.previousReleaseId === releaseId) return;
      // Locked so that the retention does not delete it.
      const options = { where: { id: releaseId }, select: { id: true }, lock: { mode: 'for_key_share' } } as const;
      if (!(await tx.findOne(Release, options))) throw new NotFoundError(RELEASE_NOT_FOUND);
      await this.releaseSwitch.replace(server.id, snapshot, compared, false, tx);
      await this.releaseLogsRepository.append(releaseId, [{ stage: 'publish', level: 'info', message }], tx);
    });
    this.releaseSwitch.announce(server.id, server.slug, releaseId);
    return this.releasesService.toDto(release, server, caller);
  }

  /**
   * @param id the release's id, or `latest`
   * @throws NotFoundError, ConflictError for another release, InvalidInputError for a bundle if bundles do not run
   * here, and for missing or invalid credentials
   */
  async rescan(server: ServerRef, id: string, { scanCredentials }: RescanDto): Promise<RequestedRescanDto> {
    const { id: releaseId, type, status, configSchema } = await this.releasesService.find(server, id);
    if (!this.serverUrlsService.remoteTypes.includes(type)) {
      throw new InvalidInputError(
        'The files of a bundle do not change after its release, so it is not scanned again: publish a changed bundle as a new release.',
      );
    }
    const current = await this.serverReleasesService.currentOf(server.id);
    if (current?.releaseId !== releaseId) throw notCurrent(status);
    const [schema, place] = type === 'stdio' ? ([current.configSchema, 'hosted'] as const) : ([configSchema] as const);
    const credentials = scanCredentials
      ? requireScanCredentials(scanCredentials, schema as ConfigSchema | null, place)
      : undefined;
    if (!credentials && current.hadCredentials) {
      // Without these values, the server might list less.
      throw new InvalidInputError(
        'This release was scanned with scanCredentials, which are not kept: send them again.',
      );
    }
    if (!(await this.rescansService.request(server.id, releaseId, credentials))) throw notCurrent(status);
    return { status, deploymentId: releaseId };
  }
}

function notCurrent(status: ReleaseStatus): ConflictError {
  return new ConflictError(
    `Only the current release can be scanned again: this one is ${status}` +
      (status === 'SUCCESS' ? ', and another one is current. Promote it first.' : '.'),
  );
}
