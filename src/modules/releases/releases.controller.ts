import { Body, Controller, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import { ApiParam, ApiTags } from '#api-docs';
import { ApiErrors } from '../../platform/http/api-docs.decorators.js';
import { PageQueryDto } from '../../platform/http/pagination.dto.js';
import { Access, CurrentCaller } from '../auth/access.decorator.js';
import type { Caller } from '../auth/access.types.js';
import { ApiServerName, ownServerOrNone, serverNotFound, TargetServer } from '../servers/server.decorator.js';
import type { ServerRef } from '../servers/server.types.js';
import {
  RequestedRescanDto,
  ReleaseDetailDto,
  ReleaseDto,
  ReleaseListDto,
  RescanDto,
  ResumedReleaseDto,
} from './release.dto.js';
import { CurrentReleaseService } from './current-release.service.js';
import { ReleaseResumptionService } from './release-resumption.service.js';
import { ReleasesService } from './releases.service.js';

/** Documents `:id`. */
export const releaseId = {
  name: 'id',
  description: "The release's id, or `latest` for the most recent one.",
  example: 'latest',
};

const releaseNotFound = { status: 404, message: 'Release not found' };

@ApiTags('Releases')
@ApiServerName()
@Controller('servers/:qualifiedName/releases')
export class ReleasesController {
  constructor(
    private readonly releasesService: ReleasesService,
    private readonly releaseResumptionService: ReleaseResumptionService,
    private readonly currentReleaseService: CurrentReleaseService,
  ) {}

  /** List the releases of a server. Newest first, without their logs. Spec 4.6. */
  @Get()
  @Access('servers:read', ownServerOrNone)
  @ApiErrors(400, serverNotFound)
  list(
    @TargetServer() server: ServerRef,
    @CurrentCaller() caller: Caller,
    @Query() query: PageQueryDto,
  ): Promise<ReleaseListDto> {
    return this.releasesService.list(server, caller, query);
  }

  /** Get a release with its log. */
  @Get(':id')
  @ApiParam(releaseId)
  @Access('servers:read', ownServerOrNone)
  @ApiErrors(releaseNotFound)
  get(
    @TargetServer() server: ServerRef,
    @CurrentCaller() caller: Caller,
    @Param('id') id: string,
  ): Promise<ReleaseDetailDto> {
    return this.releasesService.get(server, caller, id);
  }

  /** Resume a release that waits for authorization. The server is scanned again. Spec 4.7. */
  @Post(':id/resume')
  @HttpCode(202)
  @ApiParam(releaseId)
  @Access('servers:publish', ownServerOrNone)
  @ApiErrors(
    {
      status: 400,
      message:
        'Release is not in a resumable state: it is SUCCESS, and only AUTH_REQUIRED and AUTH_TIMEOUT can be resumed',
    },
    serverNotFound,
  )
  resume(@TargetServer() server: ServerRef, @Param('id') id: string): Promise<ResumedReleaseDto> {
    return this.releaseResumptionService.resume(server, id);
  }

  /** Make an earlier release current again. It is neither uploaded nor scanned again. A newer successful release replaces it. */
  @Post(':id/promote')
  @HttpCode(200)
  @ApiParam(releaseId)
  @Access('servers:publish', ownServerOrNone)
  @ApiErrors(releaseNotFound, {
    status: 409,
    message: 'Only a release that succeeded can become current: this one is FAILURE',
  })
  promote(
    @TargetServer() server: ServerRef,
    @Param('id') id: string,
    @CurrentCaller() caller: Caller,
  ): Promise<ReleaseDto> {
    return this.currentReleaseService.promote(server, id, caller);
  }

  /**
   * Scan the current release again. Its status does not change; changes are written to its log and listed under changes. A scan
   * that fails changes nothing. Servers that run elsewhere are also scanned periodically. A bundle is scanned
   * again if this service runs bundles.
   */
  @Post(':id/rescan')
  @HttpCode(202)
  @ApiParam(releaseId)
  @Access('servers:publish', ownServerOrNone)
  @ApiErrors(
    {
      status: 400,
      message:
        'The files of a bundle do not change after its release, so it is not scanned again: publish a changed bundle as a new release.',
    },
    releaseNotFound,
    { status: 409, message: 'Only the current release can be scanned again: this one is FAILURE.' },
  )
  rescan(
    @TargetServer() server: ServerRef,
    @Param('id') id: string,
    @Body() body: RescanDto,
  ): Promise<RequestedRescanDto> {
    return this.currentReleaseService.rescan(server, id, body);
  }
}
