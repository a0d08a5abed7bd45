import { Controller, Get, Query, Req, Res } from '@nestjs/common';
import { ApiExcludeController } from '#api-docs';
import type { Request, Response } from 'express';
import { Public } from '../../platform/http/public.decorator.js';
import { sentNotModified } from '../../platform/http/not-modified.js';
import { frameFiles } from '../../platform/pages/page-files.js';

@ApiExcludeController()
@Public()
@Controller('ui')
export class ConsoleFilesController {
  /** Sends a file, which browsers cache for a year under the version of its content. During an upgrade, a page might request the version of another process. */
  @Get(['style.css', 'script.js', 'mark.svg'])
  send(@Query('v') version: unknown, @Req() request: Request, @Res() response: Response): void {
    const { type, text, version: current } = frameFiles[request.path.slice('/ui/'.length) as keyof typeof frameFiles];
    const cacheControl = version === current ? 'public, max-age=31536000, immutable' : 'no-cache';
    const headers = { 'cache-control': cacheControl, etag: `"${current}"` };
    if (!sentNotModified(request, response, headers)) response.set(headers).type(type).send(text);
  }
}
