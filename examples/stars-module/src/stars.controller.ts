import { Controller, Delete, Get, Put } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import {
  Access,
  ApiErrors,
  ApiServerName,
  CurrentCaller,
  TargetServer,
  type Caller,
  type ServerRef,
} from '@slipway/module';
import { StarsDto } from './star.dto.js';
import { StarsService } from './stars.service.js';

const serverNotFound = { status: 404, message: 'Server not found' };

@ApiTags('Stars')
@ApiServerName()
@Controller('servers/:qualifiedName/stars')
export class StarsController {
  constructor(private readonly stars: StarsService) {}

  @Put()
  @Access('stars:write')
  @ApiOperation({ summary: 'Star a server' })
  @ApiOkResponse({ type: StarsDto })
  @ApiErrors(serverNotFound)
  add(@TargetServer() server: ServerRef, @CurrentCaller() caller: Caller): Promise<StarsDto> {
    return this.stars.add(server, caller);
  }

  @Get()
  @Access('stars:read', { anonymous: true })
  @ApiOperation({ summary: 'Get the stars of a server' })
  @ApiOkResponse({ type: StarsDto })
  @ApiErrors(serverNotFound)
  get(@TargetServer() server: ServerRef, @CurrentCaller() caller: Caller): Promise<StarsDto> {
    return this.stars.get(server, caller);
  }

  @Delete()
  @Access('stars:write')
  @ApiOperation({ summary: 'Remove your star from a server' })
  @ApiOkResponse({ type: StarsDto })
  @ApiErrors(serverNotFound)
  remove(@TargetServer() server: ServerRef, @CurrentCaller() caller: Caller): Promise<StarsDto> {
    return this.stars.remove(server, caller);
  }
}
