import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { toStorableJson } from '../../../platform/database/storable.js';
import { Egress } from '../../../platform/egress/egress.js';
import { hasQuery, maskedQuery } from '../../../platform/vault/masked-url.js';
import { Vault } from '../../../platform/vault/vault.js';
import type { Release } from '../release.entity.js';
import { ReleaseFiles } from '../release-files.js';
import { ReleaseLogsRepository } from '../release-log.repository.js';
import { ReleasesRepository } from '../releases.repository.js';
import type { PublishForm } from './publish-form.js';

/** Stores new releases; the vault seals URLs with a query, and scan credentials. */
@Injectable()
export class NewReleases {
  constructor(
    private readonly releasesRepository: ReleasesRepository,
    private readonly releaseLogsRepository: ReleaseLogsRepository,
    private readonly releaseFiles: ReleaseFiles,
    private readonly egress: Egress,
    private readonly vault: Vault,
  ) {}

  async cancelUnfinished(serverId: string, tx: EntityManager): Promise<string[]> {
    const cancelled = await this.releasesRepository.cancelUnfinished(serverId, tx);
    for (const { id, stage } of cancelled) {
      await this.releaseLogsRepository.append(
        id,
        [{ stage, level: 'error', message: 'Cancelled: a newer release was published.' }],
        tx,
      );
    }
    return cancelled.map(({ id }) => id);
  }

  /**
   * @throws EgressRefusedError for an upstream that the egress rules block; UnavailableError of
   * {@link ReleaseFiles.attach}
   */
  async insert(
    release: Pick<Release, 'id' | 'serverId' | 'createdBy'>,
    form: PublishForm,
    tx: EntityManager,
  ): Promise<void> {
    const { id } = release;
    const { type, payload, artifacts } = form;
    const { source, scanCredentials, serverCard, configSchema, runtime, upstreamUrl } = payload;
    const { stateful = false, hasAuthAdapter = false, secretNames = [] } = payload;
    const url = upstreamUrl === undefined ? null : this.egress.check(upstreamUrl).href;
    await this.releasesRepository.insertQueued(
      {
        ...release,
        type,
        commit: source?.commit ?? null,
        commitMessage: source?.commitMessage ?? null,
        branch: source?.branch ?? null,
        upstreamUrl: url && maskedQuery(url),
        sealedUpstreamUrl: url !== null && hasQuery(url) ? this.vault.seal(url, id) : null,
        runtime: runtime ?? null,
        configSchema: configSchema === undefined ? null : (toStorableJson(configSchema) as object),
        serverCard: serverCard === undefined ? null : (toStorableJson(serverCard) as object),
        hosting: type === 'hosted_shttp' ? { stateful, hasAuthAdapter, secretNames } : null,
        sealedScanCredentials:
          scanCredentials === undefined ? null : this.vault.seal(JSON.stringify(scanCredentials), id),
      },
      tx,
    );
    await this.releaseFiles.attach(id, artifacts, tx);
  }
}
