import { Env } from '../../config/env.js';
import { Injectable, type OnModuleInit } from '@nestjs/common';
import { InjectDataSource, InjectRepository } from '@nestjs/typeorm';
import { DataSource, In, Repository } from 'typeorm';
import { isUUID } from 'class-validator';
import { pageOf, type PageQueryDto } from '../../platform/http/pagination.dto.js';
import { PubSub } from '../../platform/queue/pub-sub.js';
import { AccessService } from '../auth/access.service.js';
import type { Caller } from '../auth/access.types.js';
import { CredentialsService } from '../oauth/credentials.service.js';
import type { ServerRef } from '../servers/server.types.js';
import { ServerUrlsService } from '../servers/server-urls.service.js';
import { ServerReleasesService } from '../servers/server-releases.service.js';
import { ConflictError, InvalidInputError } from '../../platform/errors/domain-error.js';
import { ServersService } from '../servers/servers.service.js';
import { ReleaseContracts } from './contract/release-contracts.js';
import type { ConfigSchema } from './config/config-fields.js';
import {
  type RequestedRescanDto,
  type ReleaseDetailDto,
  type ReleaseDto,
  type ReleaseListDto,
  type RescanDto,
  type ResumedReleaseDto,
  toReleaseDto,
  toReleaseLogDto,
} from './release.dto.js';
import { ReleaseLogRepository } from './release-log.repository.js';
import { type ReleaseLog, Release } from './release.entity.js';
import { isFailure, isResumable, statusesBefore } from './release-state.js';
import { NotCurrentError, NotResumableError, ReleaseNotFoundError } from './releases.errors.js';
import { RescansService } from './rescan/rescans.service.js';
import { ReleasesQueue } from './releases.queue.js';
import { ReleasesRepository } from './releases.repository.js';
import { requireScanCredentials } from './scan/scan-credentials.js';
import type { ReleaseCurrent } from './releases.types.js';

/** Lists, reads, resumes, promotes and rescans the releases of a server. */
@Injectable()
export class ReleasesService implements OnModuleInit {
  constructor(
    @InjectDataSource() private readonly database: DataSource,
    @InjectRepository(Release) private readonly releases: Repository<Release>,
    private readonly logs: ReleaseLogRepository,
    private readonly rows: ReleasesRepository,
    private readonly servers: ServerReleasesService,
    private readonly contracts: ReleaseContracts,
    private readonly rescans: RescansService,
    private readonly queue: ReleasesQueue,
    private readonly pubSub: PubSub,
    private readonly urls: ServerUrlsService,
    private readonly credentials: CredentialsService,
    private readonly registry: ServersService,
    private readonly access: AccessService,
    private readonly env: Env,
  ) {}

  /** Resumes a release once it is authorized, and revokes the credentials of a deleted server. */
  onModuleInit(): void {
    this.registry.beforeDeletion(({ id }) => this.credentials.remove({ kind: 'server', id }));
    // A release that waits, or is about to wait again; without one the links of cancelled releases are over.
    const unfinished = statusesBefore('CANCELLED');
    this.credentials.registerPendingCheck('server', (serverId) =>
      this.releases.existsBy({ serverId, status: In(unfinished) }),
    );
    this.credentials.registerDescription('server', (serverId) => this.registry.presentation(serverId));
    this.credentials.onAuthorized('server', (serverId) => this.resumeNewest(serverId));
  }

  /** One page of a server's releases, newest first, without logs (Spec 4.6). */
  async list(server: ServerRef, query: PageQueryDto): Promise<ReleaseListDto> {
    const where = { serverId: server.id };
    const { offset, pagination } = pageOf(query, await this.releases.countBy(where));
    if (offset === null) return { releases: [], pagination };
    const rows = await this.releases.find({ where, order: { seq: 'DESC' }, skip: offset, take: pagination.pageSize });
    return { releases: await this.toDtos(rows, server), pagination };
  }

  /** A release with its log. @param id its id, or `latest` @throws ReleaseNotFoundError */
  async get(server: ServerRef, id: string): Promise<ReleaseDetailDto> {
    const release = await this.find(server, id);
    const [[dto], logs] = await Promise.all([this.toDtos([release], server), this.logsOf(release.id)]);
    return { ...dto, logs: logs.map(toReleaseLogDto) };
  }

  /** Finds a release. @param id its id, or `latest` @throws ReleaseNotFoundError */
  async find(server: ServerRef, id: string): Promise<Release> {
    if (id !== 'latest' && !isUUID(id)) throw new ReleaseNotFoundError();
    const where = { serverId: server.id, ...(id === 'latest' ? {} : { id }) };
    const release = await this.releases.findOne({ where, order: { seq: 'DESC' } });
    if (!release) throw new ReleaseNotFoundError();
    return release;
  }

  /** The log of a release, in order. @param after the `seq` after which it begins */
  logsOf(releaseId: string, after?: string): Promise<ReleaseLog[]> {
    return this.logs.of(releaseId, after);
  }

  /**
   * Continues a release that waits for authorization (Spec 4.7). Of concurrent requests one resumes it, and all of them
   * succeed, as does one that is repeated within 60 s.
   *
   * @param id the release's id, or `latest`
   * @throws ReleaseNotFoundError, NotResumableError
   */
  async resume(server: ServerRef, id: string): Promise<ResumedReleaseDto> {
    const release = await this.find(server, id);
    const answer = { status: 'WORKING', deploymentId: release.id };
    if (wasJustResumed(release)) return answer;
    if (!isResumable(release.status)) throw new NotResumableError(release.status);
    if (!(await this.continue(release.id))) await this.requireContinued(server, release.id);
    return answer;
  }

  /**
   * Makes an earlier release that succeeded the current one again, without uploading it.
   *
   * @param id the release's id, or `latest`
   * @throws ReleaseNotFoundError, ConflictError for a release that did not succeed
   */
  async promote(server: ServerRef, id: string, caller: Caller): Promise<ReleaseDto> {
    const { id: releaseId } = await this.find(server, id);
    const release = await this.rows.findWith(releaseId, ['snapshot']);
    if (!release) throw new ReleaseNotFoundError();
    const { snapshot } = release;
    if (release.status !== 'SUCCESS' || snapshot === null) {
      throw new ConflictError(`Only a release that succeeded can become current: this one is ${release.status}`);
    }
    const compared = await this.contracts.compare(server.id, snapshot);
    const message = `Promoted by the key ${JSON.stringify(await this.access.keyName(caller))}`;
    await this.database.transaction(async (tx) => {
      // Already current: a rescan may have replaced its snapshot with a newer one.
      if (compared.previousReleaseId === releaseId) return;
      // Locked against its retention.
      const kept = { where: { id: releaseId }, select: { id: true }, lock: { mode: 'for_key_share' } } as const;
      if (!(await tx.findOne(Release, kept))) throw new ReleaseNotFoundError();
      await this.servers.setCurrent(server.id, snapshot, tx);
      await this.contracts.record({ serverId: server.id, releaseId, foundBy: 'release' }, compared, tx);
      await this.rescans.watch(server.id, snapshot, false, tx);
      await this.logs.append(releaseId, [{ stage: 'publish', level: 'info', message }], tx);
    });
    const current: ReleaseCurrent = { serverId: server.id, slug: server.slug, releaseId };
    this.pubSub.publish('releases.current', current);
    return toReleaseDto(release, { ...this.mcpUrlOf(server, release), isCurrent: true });
  }

  /**
   * Requests a scan of the current release, at once.
   *
   * @param id the release's id, or `latest`
   * @throws ReleaseNotFoundError, NotCurrentError, InvalidInputError for a bundle, and for missing or invalid credentials
   */
  async rescan(server: ServerRef, id: string, { scanCredentials }: RescanDto): Promise<RequestedRescanDto> {
    const { id: releaseId, type, status, configSchema } = await this.find(server, id);
    if (type === 'stdio') {
      throw new InvalidInputError(
        'The files of a bundle do not change after its release, so it is not scanned again: publish a changed bundle as a new release.',
      );
    }
    const current = await this.servers.currentOf(server.id);
    if (current?.releaseId !== releaseId) throw new NotCurrentError(status);
    const credentials = scanCredentials && requireScanCredentials(scanCredentials, configSchema as ConfigSchema | null);
    if (!credentials && current.hadCredentials) {
      // Without them the server may show less.
      throw new InvalidInputError(
        'This release was scanned with scanCredentials, which are not kept: send them again.',
      );
    }
    if (!(await this.rescans.request(server.id, releaseId, credentials))) throw new NotCurrentError(status);
    return { status, deploymentId: releaseId };
  }

  /** Continues the newest release of a server if it waits for authorization. */
  private async resumeNewest(serverId: string): Promise<void> {
    const release = await this.releases.findOne({ where: { serverId }, order: { seq: 'DESC' } });
    if (release && isResumable(release.status)) await this.continue(release.id);
  }

  /** Accepts that another request resumed the release, and refuses a cancelled one. @throws NotResumableError */
  private async requireContinued(server: ServerRef, id: string): Promise<void> {
    const { status } = await this.find(server, id);
    if (status === 'CANCELLED') throw new NotResumableError(status);
  }

  /** @returns false when the release did not wait for authorization */
  private async continue(releaseId: string): Promise<boolean> {
    const attempt = await this.rows.resume(releaseId);
    if (attempt === null) return false;
    this.pubSub.publish('releases.changed', { id: releaseId });
    this.queue.enqueue({ releaseId, attempt });
    return true;
  }

  /** The member `mcpUrl`; none for a bundle where bundles do not run: there is nothing to call. */
  mcpUrlOf({ slug }: ServerRef, { type }: Pick<Release, 'type'>): { mcpUrl?: string } {
    return type === 'stdio' && this.env.runtimeBundles === 'off' ? {} : { mcpUrl: this.urls.run(slug) };
  }

  private async toDtos(releases: Release[], server: ServerRef): Promise<ReleaseDto[]> {
    const currentId = await this.servers.currentIdOf(server.id);
    const failed = releases.filter(({ status }) => isFailure(status));
    const errors = await this.logs.lastErrors(failed.map(({ id }) => id));
    return releases.map((release) => {
      const lastError = errors.get(release.id);
      return toReleaseDto(release, {
        ...this.mcpUrlOf(server, release),
        isCurrent: release.id === currentId,
        ...(lastError !== undefined && { lastError }),
      });
    });
  }
}

/** Time in which a client may repeat a resume whose answer it lost. */
const RESUME_REPEAT_MS = 60_000;

/** True while a release works that was enqueued again, by a resume or after a wait, for 60 s after its last change. */
function wasJustResumed({ status, attempt, updatedAt }: Release): boolean {
  return status === 'WORKING' && attempt > 1 && Date.now() - updatedAt.getTime() < RESUME_REPEAT_MS;
}
