import { Controller, Get, Headers, Param, Res } from '@nestjs/common';
import { ApiParam, ApiTags } from '#api-docs';
import type { Response } from 'express';
import { ApiErrors, ApiEventStream } from '../../../platform/http/api-docs.decorators.js';
import { Access, CurrentCaller } from '../../auth/access.decorator.js';
import type { Caller } from '../../auth/access.types.js';
import { ApiServerName, ownServerOrNone, TargetServer } from '../../servers/server.decorator.js';
import type { ServerRef } from '../../servers/server.types.js';
import { releaseId } from '../releases.controller.js';
import { ReleaseStreams } from './release-streams.js';

@ApiTags('Releases')
@ApiServerName()
@Controller('servers/:qualifiedName/releases/:id/stream')
export class ReleaseStreamsController {
  constructor(private readonly releaseStreams: ReleaseStreams) {}

  /**
   * Follow a release live. Server-sent events: `init` with status and log so far, `log` for each new line, `status` for
   * each change, and `complete` at the end. Come back with `Last-Event-ID` to get only what you missed.
   */
  @Get()
  @ApiParam(releaseId)
  @ApiEventStream('id: 7\nevent: status\ndata: {"status":"WORKING"}\n\n')
  @Access('servers:read', ownServerOrNone)
  @ApiErrors(
    { status: 404, message: 'Release not found' },
    {
      status: 429,
      text: 'Too many releases are followed.',
      message: 'This account follows as many releases as one may',
    },
  )
  async follow(
    @TargetServer() server: ServerRef,
    @Param('id') id: string,
    @Headers('last-event-id') after: string | undefined,
    @CurrentCaller() caller: Caller,
    @Res() response: Response,
  ): Promise<void> {
    await this.releaseStreams.follow(server, id, { caller, after }, response);
  }
}
