import { Controller, Get, Req, Res } from '@nestjs/common';
import { ApiOkResponse, ApiTags } from '#api-docs';
import type { Request, Response } from 'express';
import { ApiEtag, ApiErrors } from '../../../platform/http/api-docs.decorators.js';
import { sentNotModified } from '../../../platform/http/not-modified.js';
import { Access, type GrantedRequest } from '../../auth/access.decorator.js';
import { ApiServerName, TargetServer } from '../../servers/server.decorator.js';
import type { ServerRef } from '../../servers/server.types.js';
import { ServersService } from '../../servers/servers.service.js';
import { ReleasesRepository } from '../releases.repository.js';
import { ReleaseFiles } from '../release-files.js';

@ApiTags('Releases')
@ApiServerName()
@Controller('servers/:qualifiedName/download')
export class BundleController {
  constructor(
    private readonly releasesRepository: ReleasesRepository,
    private readonly releaseFiles: ReleaseFiles,
    private readonly serversService: ServersService,
  ) {}

  /** Download the bundle of a server. Returns that of the current release, or else of the latest successful release with a bundle. */
  @Get()
  @Access('servers:read', { anonymous: true, signed: true })
  @ApiEtag()
  @ApiOkResponse({
    description: 'The MCPB bundle, byte for byte as it was published.',
    content: { 'application/zip': { schema: { type: 'string', format: 'binary' } } },
  })
  @ApiErrors({ status: 404, message: 'Bundle not found: the server has no successful release of type stdio' })
  async download(
    @TargetServer() server: ServerRef,
    @Req() request: GrantedRequest & Request,
    @Res() response: Response,
  ): Promise<void> {
    const { caller, isSigned } = request.grant;
    if (!isSigned) await this.serversService.requireWhole(caller, server);
    const bundle = await this.releasesRepository.findBundle(server.id);
    const validators = {
      etag: `"${bundle.hash}"`,
      'cache-control': 'private, no-cache',
      'last-modified': bundle.publishedAt.toUTCString(),
    };
    if (sentNotModified(request, response, validators)) return;
    const described = {
      ...validators,
      'content-type': 'application/zip',
      'content-length': String(bundle.bytes),
      'content-disposition': `attachment; filename="${server.slug}.mcpb"`,
    };
    if (request.method === 'HEAD') response.set(described).end();
    else await this.releaseFiles.sendBundle(bundle, response, () => response.set(described));
  }
}
