import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, In, type EntityManager } from 'typeorm';
import { Env } from '../../../config/env.js';
import { BlobStore } from '../../../platform/blobs/blob-store.js';
import { isForeignKeyViolation } from '../../../platform/database/postgres-errors.js';
import { toStorableJson } from '../../../platform/database/storable.js';
import { Egress } from '../../../platform/egress/egress.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import { Vault } from '../../../platform/vault/vault.js';
import type { ServerRef } from '../../servers/server.types.js';
import { ServerNotFoundError } from '../../servers/servers.errors.js';
import { ServerUrlsService } from '../../servers/server-urls.service.js';
import { ServerReleasesService } from '../../servers/server-releases.service.js';
import type { KeepFile, PublishForm } from './publish-form.js';
import type { PublishedDto } from './publish.dto.js';
import { ReleaseFiles } from '../release-files.js';
import { endOfLease, queueDeadlineSql } from '../release-lease.js';
import { writeLines } from '../release-log.js';
import { statusesBefore } from '../release-state.js';
import { Release } from '../release.entity.js';
import { ReleasesQueue } from '../releases.queue.js';

/** Takes releases in. */
@Injectable()
export class PublishService {
  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly servers: ServerReleasesService,
    private readonly files: ReleaseFiles,
    private readonly blobs: BlobStore,
    private readonly queue: ReleasesQueue,
    private readonly pubSub: PubSub,
    private readonly egress: Egress,
    private readonly vault: Vault,
    private readonly links: ServerUrlsService,
    private readonly env: Env,
  ) {}

  /**
   * Stores a release and asks for its pipeline. An unfinished release of the same server is cancelled: one is enough.
   *
   * @param readForm stores the files of the form through what it is given
   * @throws what `readForm` throws; EgressRefusedError for an upstream that may not be dialled; ServerNotFoundError when
   * it went meanwhile
   */
  async publish(server: ServerRef, readForm: (keep: KeepFile) => Promise<PublishForm>): Promise<PublishedDto> {
    const kept: string[] = [];
    try {
      const form = await readForm(async (content, bytesMax) => {
        const blob = await this.blobs.put(content, bytesMax);
        kept.push(blob.hash);
        return blob;
      });
      return await this.store(server, form);
    } catch (error) {
      await this.files.discard(kept);
      throw error;
    }
  }

  private async store(server: ServerRef, form: PublishForm): Promise<PublishedDto> {
    const id = randomUUID();
    const cancelled = await this.database
      .transaction(async (tx) => {
        await this.servers.lock(server.id, tx);
        const older = await this.cancelUnfinished(server.id, tx);
        await this.insert(id, server, form, tx);
        return older;
      })
      .catch((error: unknown) => {
        throw isForeignKeyViolation(error) ? new ServerNotFoundError() : error;
      });
    for (const older of cancelled) this.pubSub.publish('releases.changed', { id: older });
    this.queue.enqueue({ releaseId: id, attempt: 1 });
    const { warnings } = form;
    const mcpUrl = this.links.run(server.slug);
    return { deploymentId: id, status: 'QUEUED', mcpUrl, ...(warnings.length === 0 ? {} : { warnings }) };
  }

  private async cancelUnfinished(serverId: string, tx: EntityManager): Promise<string[]> {
    const { raw } = (await tx
      .createQueryBuilder()
      .update(Release)
      .set(endOfLease('CANCELLED'))
      .where({ serverId, status: In(statusesBefore('CANCELLED')) })
      .returning(['id', 'stage'])
      .execute()) as { raw: Pick<Release, 'id' | 'stage'>[] };
    for (const { id, stage } of raw) {
      await writeLines(id, [{ stage, level: 'error', message: 'Cancelled: a newer release was published.' }], tx);
    }
    return raw.map(({ id }) => id);
  }

  private async insert(id: string, server: ServerRef, form: PublishForm, tx: EntityManager): Promise<void> {
    const { type, payload, artifacts } = form;
    const { source, scanCredentials, serverCard, configSchema, runtime, upstreamUrl } = payload;
    await tx
      .createQueryBuilder()
      .insert()
      .into(Release)
      .values({
        id,
        serverId: server.id,
        type,
        status: 'QUEUED',
        // Until then a worker is expected to take it; afterwards the sweeper asks again.
        leaseUntil: () => queueDeadlineSql(this.env.releaseLeaseMs),
        commit: source?.commit ?? null,
        commitMessage: source?.commitMessage ?? null,
        branch: source?.branch ?? null,
        upstreamUrl: upstreamUrl === undefined ? null : this.egress.check(upstreamUrl).href,
        runtime: runtime ?? null,
        configSchema: configSchema === undefined ? null : (toStorableJson(configSchema) as object),
        serverCard: serverCard === undefined ? null : (toStorableJson(serverCard) as object),
        hosting: type === 'hosted_shttp' ? hostingRequest(payload) : null,
        sealedScanCredentials:
          scanCredentials === undefined ? null : this.vault.seal(JSON.stringify(scanCredentials), id),
      })
      .updateEntity(false)
      .execute();
    await this.files.attach(id, artifacts, tx);
  }
}

function hostingRequest({ stateful = false, hasAuthAdapter = false, secretNames = [] }: PublishForm['payload']) {
  return { stateful, hasAuthAdapter, secretNames };
}
