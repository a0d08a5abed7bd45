import { Controller, Get, Query, Req, Res } from '@nestjs/common';
import { ApiTags } from '#api-docs';
import { isUUID } from 'class-validator';
import type { Request, Response } from 'express';
import { ApiErrors, ApiEventStream } from '../../../platform/http/api-docs.decorators.js';
import { Access, CurrentCaller } from '../../auth/access.decorator.js';
import { AccessService } from '../../auth/access.service.js';
import type { AccessRule, Caller } from '../../auth/access.types.js';
import { ApiServerName, ownServerOrNone, serverNotFound, TargetServer } from '../../servers/server.decorator.js';
import type { ServerRef } from '../../servers/server.types.js';
import { LogStreams } from './log-streams.js';
import { InvocationFilterDto } from '../search/runtime-log.dto.js';

const rule: AccessRule = { scope: 'servers:read', ...ownServerOrNone };

@ApiTags('Runtime logs')
@ApiServerName()
@Controller('servers/:qualifiedName/logs/stream')
export class LogStreamsController {
  constructor(
    private readonly logStreams: LogStreams,
    private readonly accessService: AccessService,
  ) {}

  /**
   * Follow the invocations of a server live. Server-sent events: `init` with the newest, newest first, then `invocation`
   * for each new one, and again with the same `id` when parts are added. Reconnect with `Last-Event-ID` within 15 minutes
   * to receive the events in between. The stream ends when the key loses access or the server is deleted; an account may
   * have 10 streams in a process.
   */
  @Get()
  @ApiEventStream('id: \nevent: init\ndata: {"invocations":[]}\n\n')
  @Access('servers:read', ownServerOrNone)
  @ApiErrors(400, serverNotFound, { status: 429, message: 'Too many logs are followed already' })
  follow(
    @TargetServer() server: ServerRef,
    @Query() { limit = 20, ...query }: InvocationFilterDto,
    @CurrentCaller() { accountId, keyId }: Caller,
    @Req() request: Request,
    @Res() response: Response,
  ): void {
    const last = request.headers['last-event-id'];
    const after = typeof last === 'string' && isUUID(last) ? last.toLowerCase() : undefined;
    const check = async () => {
      const caller = await this.accessService.authenticate(request);
      await this.accessService.authorize(caller, rule, { owner: String(request.params.qualifiedName) });
    };
    this.logStreams.follow({ serverId: server.id, accountId, keyId, query, limit, after, check }, response);
  }
}
