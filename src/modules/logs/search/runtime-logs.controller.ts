import { Body, Controller, Get, HttpCode, Post, Query } from '@nestjs/common';
import { ApiBody, ApiOkResponse, ApiResponse, ApiTags } from '#api-docs';
import { ApiErrors } from '../../../platform/http/api-docs.decorators.js';
import { Access } from '../../auth/access.decorator.js';
import { ApiServerName, ownServerOrNone, serverNotFound, TargetServer } from '../../servers/server.decorator.js';
import type { ServerRef } from '../../servers/server.types.js';
import { AcceptedInvocationsDto, RuntimeLogDto, RuntimeLogQueryDto } from './runtime-log.dto.js';
import {
  acceptedInvocationsExample,
  runtimeLogExample,
  sentInvocationsExample,
  sentInvocationsSchema,
} from './runtime-log.examples.js';
import { RuntimeLogsService } from './runtime-logs.service.js';

@ApiTags('Runtime logs')
@ApiServerName()
@Controller('servers/:qualifiedName/logs')
export class RuntimeLogsController {
  constructor(private readonly runtimeLogsService: RuntimeLogsService) {}

  /**
   * List recent invocations of a server. Each with its outcome, log lines and exceptions; newest first. Listed within
   * seconds. Spec 4.9.
   */
  @Get()
  @Access('servers:read', ownServerOrNone)
  @ApiOkResponse({ type: RuntimeLogDto, example: runtimeLogExample })
  @ApiErrors(400, serverNotFound, { status: 504, message: 'The search took longer than 10 s: give a shorter range' })
  list(@TargetServer() server: ServerRef, @Query() query: RuntimeLogQueryDto): Promise<RuntimeLogDto> {
    return this.runtimeLogsService.list(server, query);
  }

  /**
   * Send records of a server that runs elsewhere. Records have the form that `GET` returns, at most 1,000 and 1 MB. Slipway
   * accepts all of them or none; all fields of a record are optional. It cuts long messages, removes queries of URLs and
   * redacts credentials.
   */
  @Post()
  @HttpCode(202)
  @ApiBody({ schema: sentInvocationsSchema, examples: { one: { value: sentInvocationsExample } } })
  @Access('servers:publish', ownServerOrNone)
  @ApiResponse({ status: 202, type: AcceptedInvocationsDto, example: acceptedInvocationsExample })
  @ApiErrors(
    { status: 400, message: 'invocations[3].response.status must be a number from 100 to 599' },
    serverNotFound,
    { status: 503, message: 'Too many log records are waiting to be written: send the same again in a few seconds' },
  )
  send(@TargetServer() server: ServerRef, @Body() body: unknown): Promise<AcceptedInvocationsDto> {
    return this.runtimeLogsService.acceptInvocations(server, body);
  }
}
