import { Injectable } from '@nestjs/common';
import type { PageQueryDto } from '../../platform/http/pagination.dto.js';
import { SourceCompiler } from '../connections/source/source-compiler.service.js';
import { CurrentReleaseService } from '../releases/current-release.service.js';
import type {
  ExternalPayloadDto,
  HostedPayloadDto,
  PublishedDto,
  StdioPayloadDto,
} from '../releases/publish/publish.dto.js';
import { PublishService } from '../releases/publish/publish.service.js';
import {
  type ReleaseDetailDto,
  type ReleaseDto,
  type ReleaseListDto,
  toReleaseLogDto,
} from '../releases/release.dto.js';
import type { ReleaseLogDto, ResumedReleaseDto } from '../releases/release.dto.js';
import { ReleaseResumptionService } from '../releases/release-resumption.service.js';
import { ReleasesService } from '../releases/releases.service.js';
import { toLogPosition } from '../releases/releases.types.js';
import { ownServerOrNone, publishedServer } from '../servers/server.decorator.js';
import type { FacadeCaller } from './facade.types.js';
import { FacadeTargets, managedServer } from './facade-targets.js';

/** What to publish: the `payload` of `PUT /servers/{qualifiedName}/releases`. @stability preview */
export type NewRelease =
  | ({ type: 'external' } & ExternalPayloadDto)
  | ({ type: 'hosted' } & HostedPayloadDto)
  | ({ type: 'stdio' } & StdioPayloadDto);

/**
 * The files of a release, with the limits of REST: `module` and `sourcemap` of a `hosted` one, `bundle` of a `stdio` one. In place
 * of `module`, `source`: one TypeScript file (`.ts`, `.tsx`, `.mts` or `.cts`, at most 128 KB), compiled as the `source` of a
 * connection.
 *
 * @stability preview
 */
export type NewFiles = Partial<Record<'module' | 'sourcemap' | 'bundle', Uint8Array>> & {
  source?: { path: string; contents: string };
};

/** Lines of the log of a release. Passed to the next call, `after` selects newer lines. @stability preview */
export type ReleaseLogPart = Pick<ReleaseDto, 'status'> & { lines: ReleaseLogDto[]; after: string };

/**
 * Publishes releases of servers, and reads their progress.
 *
 * @stability preview
 * @example // Publishes pasted code, and tells its author what to do next. export class WorkshopService {
 *   constructor(private readonly releases: Releases) {}
 *
 *   async publish(caller: Caller, server: string, contents: string): Promise<string> {
 *     const source = { path: 'server.ts', contents };
 *     const { deploymentId } = await this.releases.publish(caller, server, { type: 'hosted' }, { source });
 *     return deploymentId;
 *   }
 *
 *   async nextStep(caller: Caller, server: string, id: string): Promise<string> {
 *     const { status, setupUrl, lastError } = await this.releases.get(caller, server, id);
 *     return setupUrl ? `Authorize the server: ${setupUrl}` : (lastError ?? status);
 *   } }
 */
export abstract class Releases {
  /**
   * Publishes a release of an existing server and cancels an unfinished one. With `asSystem`, here and in each method that changes
   * something, the change is recorded as one of the owner.
   *
   * @throws InvalidInputError; InvalidSourceError with the `diagnostics` of a `source`; QuotaExceededError; ServerNotFoundError
   */
  abstract publish(caller: FacadeCaller, name: string, payload: NewRelease, files?: NewFiles): Promise<PublishedDto>;

  /**
   * Returns a page of releases, newest first.
   *
   * @throws ServerNotFoundError for a server that the caller cannot manage or read as a member
   */
  abstract list(caller: FacadeCaller, name: string, query?: PageQueryDto): Promise<ReleaseListDto>;

  /**
   * Returns a release with its log by stages, the cause of a failure (`lastError`), and, while it waits for authorization, the `setupUrl`
   * for its owner; `asSystem` gets no link.
   *
   * @param id its id, or `latest`, as in all methods below
   * @throws ServerNotFoundError as {@link list}; NotFoundError for a release of another server
   */
  abstract get(caller: FacadeCaller, name: string, id: string): Promise<ReleaseDetailDto>;

  /** Returns the lines of the log after a position, or all of them. @throws as {@link get} */
  abstract log(caller: FacadeCaller, name: string, id: string, after?: string): Promise<ReleaseLogPart>;

  /**
   * Resumes a release that waits for authorization. @throws as {@link get}; InvalidInputError for one that does not
   * wait
   */
  abstract resume(caller: FacadeCaller, name: string, id: string): Promise<ResumedReleaseDto>;

  /** Makes an earlier release current again (`promote`). @throws as {@link get}; ConflictError for one that did not succeed */
  abstract rollBack(caller: FacadeCaller, name: string, id: string): Promise<ReleaseDto>;
}

const publishableServer = { scope: 'servers:publish', ...ownServerOrNone } as const;

@Injectable()
export class ServiceReleases implements Releases {
  constructor(
    private readonly facadeTargets: FacadeTargets,
    private readonly publishService: PublishService,
    private readonly releasesService: ReleasesService,
    private readonly currentReleaseService: CurrentReleaseService,
    private readonly releaseResumptionService: ReleaseResumptionService,
    private readonly sourceCompiler: SourceCompiler,
  ) {}

  readonly publish: Releases['publish'] = async (caller, name, payload, { source, ...files } = {}) => {
    const rule = { scope: 'servers:publish', ...publishedServer } as const;
    const { server, actor } = await this.facadeTargets.server(caller, name, rule);
    const module = source ? await this.sourceCompiler.compileFile(source, server.namespaceId) : files.module;
    return this.publishService.publishFiles(server, actor, payload, { ...files, module });
  };

  readonly list: Releases['list'] = async (requester, name, query = {}) => {
    const { server, caller } = await this.facadeTargets.server(requester, name, managedServer);
    return this.releasesService.list(server, caller, query);
  };

  readonly get: Releases['get'] = async (requester, name, id) => {
    const { server, caller } = await this.facadeTargets.server(requester, name, managedServer);
    return this.releasesService.get(server, caller, id);
  };

  readonly log: Releases['log'] = async (requester, name, id, after) => {
    const { server, caller } = await this.facadeTargets.server(requester, name, managedServer);
    const position = toLogPosition(after);
    const release = await this.releasesService.find(server, id);
    const lines = await this.releasesService.logsOf(release.id, server, caller, position);
    return { status: release.status, lines: lines.map(toReleaseLogDto), after: lines.at(-1)?.seq ?? position };
  };

  readonly resume: Releases['resume'] = async (caller, name, id) => {
    const { server } = await this.facadeTargets.server(caller, name, publishableServer);
    return this.releaseResumptionService.resume(server, id);
  };

  readonly rollBack: Releases['rollBack'] = async (caller, name, id) => {
    const { server, actor } = await this.facadeTargets.server(caller, name, publishableServer);
    return this.currentReleaseService.promote(server, id, actor);
  };
}
