import { Controller, Get, Query } from '@nestjs/common';
import { ApiOkResponse, ApiTags } from '#api-docs';
import { ApiErrors } from '../../../platform/http/api-docs.decorators.js';
import { Access, CurrentCaller } from '../../auth/access.decorator.js';
import type { Caller } from '../../auth/access.types.js';
import { ServerListDto, serverListExample, ServerQueryDto } from './server-search.dto.js';
import { ServerSearchService } from './server-search.service.js';

@ApiTags('Servers')
@Controller('servers')
export class ServerSearchController {
  constructor(private readonly serverSearchService: ServerSearchService) {}

  /**
   * List or search servers. With `q` the best match comes first; without, the most used. Every filter given must match.
   */
  @Get()
  @Access('servers:read', { anonymous: true })
  @ApiOkResponse({ type: ServerListDto, example: serverListExample })
  @ApiErrors(400)
  list(@Query() query: ServerQueryDto, @CurrentCaller() caller: Caller): Promise<ServerListDto> {
    return this.serverSearchService.list(query, caller);
  }
}
