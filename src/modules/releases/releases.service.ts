import { Env } from '../../config/env.js';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { isUUID } from 'class-validator';
import { pageOf, type PageQueryDto } from '../../platform/http/pagination.dto.js';
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
import { ReleaseLogRepository } from './release-log.repository.js';
import { type ReleaseLog, Release } from './release.entity.js';
import { isFailure } from './release-state.js';

/** The server has no release with this id, or none at all. */
export const RELEASE_NOT_FOUND = 'Release not found';

/** Lists and reads the releases of a server. */
@Injectable()
export class ReleasesService {
  constructor(
    @InjectRepository(Release) private readonly releases: Repository<Release>,
    private readonly logs: ReleaseLogRepository,
    private readonly servers: ServerReleasesService,
    private readonly urls: ServerUrlsService,
    private readonly env: Env,
  ) {}

  /** One page of a server's releases, newest first, without logs (Spec 4.6). */
  async list(server: ServerRef, query: PageQueryDto): Promise<ReleaseListDto> {
    const where = { serverId: server.id };
    const { offset, pagination } = pageOf(query, await this.releases.countBy(where));
    if (offset === null) return { releases: [], pagination };
    const rows = await this.releases.find({ where, order: { seq: 'DESC' }, skip: offset, take: pagination.pageSize });
    return { releases: await this.toDtos(rows, server), pagination };
  }

  /** A release with its log. @param id its id, or `latest` @throws NotFoundError */
  async get(server: ServerRef, id: string): Promise<ReleaseDetailDto> {
    const release = await this.find(server, id);
    const [[dto], logs] = await Promise.all([this.toDtos([release], server), this.logsOf(release.id)]);
    return { ...dto, logs: logs.map(toReleaseLogDto) };
  }

  /** Finds a release. @param id its id, or `latest` @throws NotFoundError */
  async find(server: ServerRef, id: string): Promise<Release> {
    const where = { serverId: server.id, ...(id === 'latest' ? {} : { id }) };
    const isId = id === 'latest' || isUUID(id);
    const release = isId ? await this.releases.findOne({ where, order: { seq: 'DESC' } }) : null;
    if (!release) throw new NotFoundError(RELEASE_NOT_FOUND);
    return release;
  }

  /** The log of a release, in order. @param after the `seq` after which it begins */
  logsOf(releaseId: string, after?: string): Promise<ReleaseLog[]> {
    return this.logs.of(releaseId, after);
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
