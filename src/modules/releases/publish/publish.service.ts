import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { transactionOf } from '../../../platform/database/actor.js';
import { isForeignKeyViolation } from '../../../platform/database/postgres-errors.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import { AccountLimitsService } from '../../auth/account-limits.service.js';
import type { Caller } from '../../auth/access.types.js';
import type { ServerRef } from '../../servers/server.types.js';
import { ServerNotFoundError } from '../../servers/servers.errors.js';
import { ServerUrlsService } from '../../servers/server-urls.service.js';
import { ServerAccessService } from '../../servers/server-access.service.js';
import { ServerSecretsService } from '../../servers/settings/server-secrets.service.js';
import { ServerReleasesService } from '../../servers/server-releases.service.js';
import { type KeepFile, type PublishFiles, type PublishForm, toPublishForm } from './publish-form.js';
import type { PublishedDto } from './publish.dto.js';
import { ReleaseFiles } from '../release-files.js';
import { ReleasesQueue } from '../releases.queue.js';
import { NewReleases } from './new-releases.js';

@Injectable()
export class PublishService {
  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly newReleases: NewReleases,
    private readonly serverReleasesService: ServerReleasesService,
    private readonly releaseFiles: ReleaseFiles,
    private readonly releasesQueue: ReleasesQueue,
    private readonly pubSub: PubSub,
    private readonly serverUrlsService: ServerUrlsService,
    private readonly accountLimitsService: AccountLimitsService,
    private readonly serverSecretsService: ServerSecretsService,
    private readonly serverAccessService: ServerAccessService,
  ) {}

  /**
   * Publishes a release, and cancels unfinished releases of the same server.
   *
   * @param readForm reads the form, and stores its files with the function it receives
   * @throws the errors of `readForm`; QuotaExceededError; EgressRefusedError for an upstream that the egress rules
   * block; UnavailableError of {@link ReleaseFiles.attach}; OpenedByOwnersError, KeyScopeError; ServerNotFoundError if
   * the server was deleted meanwhile
   */
  publish(
    server: ServerRef,
    caller: Caller,
    readForm: (keep: KeepFile) => Promise<PublishForm>,
  ): Promise<PublishedDto> {
    return this.releaseFiles.storing(async (keep) => this.store(server, caller, await readForm(keep)));
  }

  /** Works like {@link publish} for a payload and files outside a form. */
  publishFiles(server: ServerRef, caller: Caller, payload: object, files: PublishFiles): Promise<PublishedDto> {
    return this.publish(server, caller, (keep) => toPublishForm(payload, files, keep, server.namespaceId));
  }

  private async store(server: ServerRef, caller: Caller, form: PublishForm): Promise<PublishedDto> {
    const id = randomUUID();
    const bytes = Object.values(form.artifacts).reduce((sum, artifact) => sum + artifact.bytes, 0);
    const { visibility } = form.payload;
    const quotas = { releases: 1, artifactBytes: bytes };
    const cancelled = await this.accountLimitsService
      .createWithinQuota({ namespaceId: server.namespaceId }, quotas, () =>
        transactionOf(this.database, caller, async (tx) => {
          await this.serverReleasesService.lock(server.id, tx);
          const requireOpener = this.serverAccessService.requireOpener.bind(this.serverAccessService, caller);
          if (visibility) await this.serverReleasesService.setVisibility(server.id, visibility, requireOpener, tx);
          const older = await this.newReleases.cancelUnfinished(server.id, tx);
          await this.newReleases.insert({ id, serverId: server.id, createdBy: caller.accountId }, form, tx);
          return older;
        }),
      )
      .catch((error: unknown) => {
        throw isForeignKeyViolation(error) ? new ServerNotFoundError() : error;
      });
    if (visibility) this.pubSub.announce('servers.changed', { id: server.id, slug: server.slug });
    for (const older of cancelled) this.pubSub.publish('releases.changed', { id: older });
    this.releasesQueue.enqueue({ releaseId: id, attempt: 1 });
    const note = form.type === 'external_shttp' ? null : await this.serverSecretsService.publicNote(server);
    const warnings = [...form.warnings, ...(note === null ? [] : [note])];
    const mcpUrl = this.serverUrlsService.run(server.slug);
    return { deploymentId: id, status: 'QUEUED', mcpUrl, ...(warnings.length === 0 ? {} : { warnings }) };
  }
}
