import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { BlobStore } from '../../../platform/blobs/blob-store.js';
import { isForeignKeyViolation } from '../../../platform/database/postgres-errors.js';
import { toStorableJson } from '../../../platform/database/storable.js';
import { Egress } from '../../../platform/egress/egress.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import { hasQuery, maskedQuery } from '../../../platform/vault/masked-url.js';
import { Vault } from '../../../platform/vault/vault.js';
import { AccountLimitsService } from '../../auth/account-limits.service.js';
import type { ServerRef } from '../../servers/server.types.js';
import { ServerNotFoundError } from '../../servers/servers.errors.js';
import { ServerUrlsService } from '../../servers/server-urls.service.js';
import { ServerReleasesService } from '../../servers/server-releases.service.js';
import type { KeepFile, PublishForm } from './publish-form.js';
import type { PublishedDto } from './publish.dto.js';
import { ReleaseFiles } from '../release-files.js';
import { ReleaseLogRepository } from '../release-log.repository.js';
import { ReleasesQueue } from '../releases.queue.js';
import { ReleasesRepository } from '../releases.repository.js';

/** Stores published releases and starts their pipelines. */
@Injectable()
export class PublishService {
  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly releases: ReleasesRepository,
    private readonly logs: ReleaseLogRepository,
    private readonly servers: ServerReleasesService,
    private readonly files: ReleaseFiles,
    private readonly blobs: BlobStore,
    private readonly queue: ReleasesQueue,
    private readonly pubSub: PubSub,
    private readonly egress: Egress,
    private readonly vault: Vault,
    private readonly urls: ServerUrlsService,
    private readonly limits: AccountLimitsService,
  ) {}

  /**
   * Stores a release and enqueues its pipeline. Unfinished releases of the same server are cancelled.
   *
   * @param readForm reads the form, and stores its files with the function it receives
   * @throws what `readForm` throws; EgressRefusedError for an upstream that may not be dialled; ServerNotFoundError when
   * the server was deleted meanwhile
   */
  async publish(server: ServerRef, readForm: (keep: KeepFile) => Promise<PublishForm>): Promise<PublishedDto> {
    const stored: string[] = [];
    try {
      const form = await readForm(async (content, bytesMax) => {
        const blob = await this.blobs.put(content, bytesMax);
        stored.push(blob.hash);
        return blob;
      });
      return await this.store(server, form);
    } catch (error) {
      await this.files.discard(stored);
      throw error;
    }
  }

  private async store(server: ServerRef, form: PublishForm): Promise<PublishedDto> {
    const id = randomUUID();
    const bytes = Object.values(form.artifacts).reduce((sum, artifact) => sum + artifact.bytes, 0);
    const { visibility } = form.payload;
    const quotas = { releases: 1, artifactBytes: bytes };
    const cancelled = await this.limits
      .within({ namespaceId: server.namespaceId }, quotas, () =>
        this.database.transaction(async (tx) => {
          await this.servers.lock(server.id, tx);
          if (visibility) await this.servers.setVisibility(server.id, visibility, tx);
          const older = await this.cancelUnfinished(server.id, tx);
          await this.insert(id, server, form, tx);
          return older;
        }),
      )
      .catch((error: unknown) => {
        throw isForeignKeyViolation(error) ? new ServerNotFoundError() : error;
      });
    if (visibility) this.pubSub.publish('servers.changed', { id: server.id, slug: server.slug });
    for (const older of cancelled) this.pubSub.publish('releases.changed', { id: older });
    this.queue.enqueue({ releaseId: id, attempt: 1 });
    const { warnings } = form;
    const mcpUrl = this.urls.run(server.slug);
    return { deploymentId: id, status: 'QUEUED', mcpUrl, ...(warnings.length === 0 ? {} : { warnings }) };
  }

  private async cancelUnfinished(serverId: string, tx: EntityManager): Promise<string[]> {
    const cancelled = await this.releases.cancelUnfinished(serverId, tx);
    for (const { id, stage } of cancelled) {
      await this.logs.append(id, [{ stage, level: 'error', message: 'Cancelled: a newer release was published.' }], tx);
    }
    return cancelled.map(({ id }) => id);
  }

  private async insert(id: string, server: ServerRef, form: PublishForm, tx: EntityManager): Promise<void> {
    const { type, payload, artifacts } = form;
    const { source, scanCredentials, serverCard, configSchema, runtime, upstreamUrl } = payload;
    const url = upstreamUrl === undefined ? null : this.egress.check(upstreamUrl).href;
    await this.releases.insertQueued(
      {
        id,
        serverId: server.id,
        type,
        commit: source?.commit ?? null,
        commitMessage: source?.commitMessage ?? null,
        branch: source?.branch ?? null,
        upstreamUrl: url && maskedQuery(url),
        sealedUpstreamUrl: url !== null && hasQuery(url) ? this.vault.seal(url, id) : null,
        runtime: runtime ?? null,
        configSchema: configSchema === undefined ? null : (toStorableJson(configSchema) as object),
        serverCard: serverCard === undefined ? null : (toStorableJson(serverCard) as object),
        hosting: type === 'hosted_shttp' ? hostingRequest(payload) : null,
        sealedScanCredentials:
          scanCredentials === undefined ? null : this.vault.seal(JSON.stringify(scanCredentials), id),
      },
      tx,
    );
    await this.files.attach(id, artifacts, tx);
  }
}

function hostingRequest({ stateful = false, hasAuthAdapter = false, secretNames = [] }: PublishForm['payload']) {
  return { stateful, hasAuthAdapter, secretNames };
}
