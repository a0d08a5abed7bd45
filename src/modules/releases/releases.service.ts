import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { isUUID } from 'class-validator';
import { readPage, type PageQueryDto } from '../../platform/http/pagination.dto.js';
import type { Caller } from '../auth/access.types.js';
import { AuthorizationsService } from '../oauth/authorizations.service.js';
import { linkHolderOf } from '../oauth/setup/setup.types.js';
import type { ServerRef } from '../servers/server.types.js';
import { ServerUrlsService } from '../servers/server-urls.service.js';
import { ServerReleasesService } from '../servers/server-releases.service.js';
import { NotFoundError } from '../../platform/errors/domain-error.js';
import {
  type ReleaseDetailDto,
  type ReleaseDto,
  type ReleaseListDto,
  toReleaseDto,
  toReleaseLogDto,
} from './release.dto.js';
import { ReleaseLogsRepository } from './release-log.repository.js';
import { type ReleaseLog, Release } from './release.entity.js';
import { isFailure } from './release-state.js';
import { ReleasesRepository } from './releases.repository.js';
import { RELEASE_SETUP_PAGE } from './releases.types.js';

/** Message for a server without a release of this id, or without any. */
export const RELEASE_NOT_FOUND = 'Release not found';

@Injectable()
export class ReleasesService {
  constructor(
    @InjectRepository(Release) private readonly releaseRepository: Repository<Release>,
    private readonly releasesRepository: ReleasesRepository,
    private readonly releaseLogsRepository: ReleaseLogsRepository,
    private readonly authorizationsService: AuthorizationsService,
    private readonly serverReleasesService: ServerReleasesService,
    private readonly serverUrlsService: ServerUrlsService,
  ) {}

  /** Lists the newest releases first, without logs (Spec 4.6). @param caller null: without setup links */
  async list(server: ServerRef, caller: Caller | null, query: PageQueryDto): Promise<ReleaseListDto> {
    const where = { serverId: server.id };
    const { rows, pagination } = await readPage(query, this.releaseRepository.countBy(where), (page) =>
      this.releaseRepository.find({ where, order: { seq: 'DESC' }, skip: page.offset, take: page.limit }),
    );
    return { releases: await this.toDtos(rows, server, caller), pagination };
  }

  /** @param id of the release, or `latest` @throws NotFoundError */
  async get(server: ServerRef, caller: Caller | null, id: string): Promise<ReleaseDetailDto> {
    const release = await this.find(server, id);
    const [dto, logs] = await Promise.all([
      this.toDto(release, server, caller),
      this.logsOf(release.id, server, caller),
    ]);
    return { ...dto, logs: logs.map(toReleaseLogDto) };
  }

  /** @param id of the release, or `latest` @throws NotFoundError */
  async find(server: ServerRef, id: string): Promise<Release> {
    const where = { serverId: server.id, ...(id === 'latest' ? {} : { id }) };
    const isId = id === 'latest' || isUUID(id);
    const release = isId ? await this.releaseRepository.findOne({ where, order: { seq: 'DESC' } }) : null;
    if (!release) throw new NotFoundError(RELEASE_NOT_FOUND);
    return release;
  }

  /**
   * Lists the lines in order, with the setup link for callers that may use it. @param after the `seq` before the first
   * line
   */
  async logsOf(releaseId: string, server: ServerRef, caller: Caller | null, after?: string): Promise<ReleaseLog[]> {
    const lines = await this.releaseLogsRepository.linesOf(releaseId, after);
    const namesPage = lines.some(({ message }) => message.includes(RELEASE_SETUP_PAGE));
    const setupUrl = namesPage ? await this.setupUrl(server, caller) : null;
    if (setupUrl === null) return lines;
    return lines.map((line) => ({ ...line, message: line.message.replace(RELEASE_SETUP_PAGE, () => setupUrl) }));
  }

  /** Returns the MCP URL; none for a bundle if bundles do not run here. */
  mcpUrlOf({ slug }: ServerRef, { type }: Pick<Release, 'type'>): { mcpUrl?: string } {
    return this.serverUrlsService.remoteTypes.includes(type) ? { mcpUrl: this.serverUrlsService.run(slug) } : {};
  }

  async toDto(release: Release, server: ServerRef, caller: Caller | null): Promise<ReleaseDto> {
    const [dto] = await this.toDtos([release], server, caller);
    return dto;
  }

  /** Returns the setup link; null without a pending authorization, and for grantees: it authorizes the server for all its callers. */
  private async setupUrl({ id, namespace }: ServerRef, caller: Caller | null): Promise<string | null> {
    const holder = !caller || caller.grant ? null : linkHolderOf(caller, namespace);
    return holder && this.authorizationsService.openLink({ kind: 'server', id }, holder);
  }

  private async toDtos(releases: Release[], server: ServerRef, caller: Caller | null): Promise<ReleaseDto[]> {
    const currentId = await this.serverReleasesService.currentIdOf(server.id);
    const failed = releases.filter(({ status }) => isFailure(status));
    const errors = await this.releaseLogsRepository.lastErrors(failed.map(({ id }) => id));
    const names = await this.releasesRepository.accountNames(releases.flatMap(({ createdBy }) => createdBy ?? []));
    const waits = releases.some(({ status }) => status === 'AUTH_REQUIRED');
    const setupUrl = waits ? await this.setupUrl(server, caller) : null;
    return releases.map((release) => {
      const { id, status, createdBy } = release;
      const lastError = errors.get(id);
      return toReleaseDto(release, {
        createdBy: createdBy === null ? null : { id: createdBy, name: names.get(createdBy) ?? '' },
        ...this.mcpUrlOf(server, release),
        isCurrent: id === currentId,
        ...(lastError !== undefined && { lastError }),
        ...(status === 'AUTH_REQUIRED' && setupUrl !== null && { setupUrl }),
      });
    });
  }
}
