import { Body, Controller, HttpCode, Post } from '@nestjs/common';
import { ApiBody, ApiOkResponse, ApiTags } from '#api-docs';
import { ApiErrors } from '../../../platform/http/api-docs.decorators.js';
import { Access, CurrentCaller } from '../../auth/access.decorator.js';
import type { Caller } from '../../auth/access.types.js';
import { ProbeBodyDto, ProbeDto, probeExample } from './probe.dto.js';
import { ProbeService } from './probe.service.js';

const body = {
  type: ProbeBodyDto,
  examples: {
    url: { summary: 'An MCP server by its URL', value: { mcpUrl: 'http://127.0.0.1:3001/mcp' } },
    server: { summary: 'A registry server', value: { server: 'acme/weather' } },
  },
};

@ApiTags('Connections')
@Controller('accounts/me/probe')
export class ProbeController {
  constructor(private readonly probeService: ProbeService) {}

  /**
   * Probe a server before you connect to it. Slipway stores nothing. It opens one session at a URL for at most 8 seconds, and reads
   * the record of a registry server. If a server does not work, the response still has status 200 and contains the next step.
   */
  @Post()
  @HttpCode(200)
  @Access('connections:write')
  @ApiBody(body)
  @ApiOkResponse({ type: ProbeDto, example: probeExample })
  @ApiErrors(400, 404, {
    status: 429,
    text: 'Your account probes too much: 4 concurrently, 30 in a minute, 300 in a day.',
    code: 'rate_limited',
    message: 'Your account may probe 30 servers in a minute: try again later',
  })
  probe(@CurrentCaller() caller: Caller, @Body() sent: ProbeBodyDto): Promise<ProbeDto> {
    return this.probeService.probe(caller, sent);
  }
}
