import { Controller, Delete, Get, Put, Req, Res } from '@nestjs/common';
import { ApiBody, ApiConsumes, ApiOkResponse, ApiTags } from '#api-docs';
import type { Request, Response } from 'express';
import { ApiEtag, ApiErrors } from '../../../platform/http/api-docs.decorators.js';
import { SuccessDto } from '../../../platform/http/success.dto.js';
import { Access } from '../../auth/access.decorator.js';
import { UploadedIconDto } from '../settings/server-settings.dto.js';
import { ApiServerName, notServerOwner, ownServer, serverNotFound, TargetServer } from '../server.decorator.js';
import { dropStalledReader } from '../../../platform/http/stalled-reader.js';
import { sentNotModified } from '../../../platform/http/not-modified.js';
import type { ServerRef } from '../server.types.js';
import { iconTypes, readUploadedIcon } from './icon-fetch.js';
import { ServerIconsService } from './server-icons.service.js';

const image = { schema: { type: 'string', format: 'binary' } } as const;

/** Lifetime in browser caches; then the browser revalidates by the hash. */
const MAX_AGE_SECONDS = 300;

/**
 * Policy of an SVG, a document that might contain scripts: opened by itself, it runs in a sandbox, with no origin and no network. `nosniff` is on
 * every response.
 */
const POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'";

@ApiTags('Server icons')
@Controller('servers/:qualifiedName/icon')
@ApiServerName()
export class ServerIconsController {
  constructor(private readonly serverIconsService: ServerIconsService) {}

  /** Upload the icon of a server. Send a PNG, JPEG, GIF, WebP or SVG of up to 1 MB, in a form with one file. */
  @Put()
  @Access('servers:write', ownServer)
  @ApiConsumes('multipart/form-data')
  @ApiBody({
    schema: {
      type: 'object',
      required: ['file'],
      properties: { file: { type: 'string', format: 'binary', description: 'The image, under any name.' } },
    },
  })
  @ApiOkResponse({ type: UploadedIconDto })
  @ApiErrors(400, notServerOwner, serverNotFound)
  async upload(@TargetServer() server: ServerRef, @Req() request: Request): Promise<UploadedIconDto> {
    return this.serverIconsService.upload(server, await readUploadedIcon(request));
  }

  /** Get the icon of a server. The image itself: the uploaded one, or the one the server names. Spec 4.12. */
  @Get()
  @Access('servers:read', { anonymous: true, signed: true })
  @ApiEtag()
  @ApiOkResponse({ description: 'The image.', content: Object.fromEntries(iconTypes.map((type) => [type, image])) })
  @ApiErrors(
    {
      status: 403,
      text: 'The signed link has expired.',
      message: 'The link is not valid or has expired: read it again from the API.',
    },
    { status: 404, message: 'Icon not found' },
    { status: 413, text: 'The only icon of the server is too large.', message: 'File too large' },
  )
  async get(@TargetServer() server: ServerRef, @Req() request: Request, @Res() response: Response): Promise<void> {
    const { bytes, contentType, hash } = await this.serverIconsService.get(server);
    const headers = {
      etag: `"${hash}"`,
      'cache-control': `private, max-age=${MAX_AGE_SECONDS}`,
      'content-security-policy': POLICY,
    };
    dropStalledReader(response);
    if (!sentNotModified(request, response, headers)) response.set(headers).type(contentType).send(bytes);
  }

  /** Remove the icon of a server. */
  @Delete()
  @Access('servers:write', ownServer)
  @ApiErrors(notServerOwner, { status: 404, message: 'Icon not found' })
  remove(@TargetServer() server: ServerRef): Promise<SuccessDto> {
    return this.serverIconsService.remove(server);
  }
}
