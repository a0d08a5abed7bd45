import { Get, Param } from '@nestjs/common';
import { ApiOkResponse, ApiTags } from '#api-docs';
import { ApiErrors } from '../../../platform/http/api-docs.decorators.js';
import { SuccessDto } from '../../../platform/http/success.dto.js';
import { Access, CurrentNamespace } from '../../auth/access.decorator.js';
import type { OwnedNamespace } from '../../auth/access.types.js';
import { ConnectionController, ownConnections } from '../core/connections.access.js';
import { ConnectionReader } from '../core/connection-reader.js';
import { UplinkTunnels } from './uplink-tunnels.js';

@ApiTags('Connections')
@ConnectionController('uplink')
export class UplinkController {
  constructor(
    private readonly connectionReader: ConnectionReader,
    private readonly uplinkTunnels: UplinkTunnels,
  ) {}

  /**
   * Get the state of an uplink: if a local server is paired. Pairing is a WebSocket at this path, or at the connection's own: text frames,
   * one JSON-RPC message each, in which Slipway is the MCP client. `?force=1` replaces the paired one, which
   * is closed with 1001 `replaced`.
   */
  @Get()
  @Access('connections:write', ownConnections)
  @ApiOkResponse({ type: SuccessDto, description: 'A local server is paired.' })
  @ApiErrors(404, { status: 503, text: 'No local server is paired.', message: 'No local server is paired' })
  async paired(
    @CurrentNamespace() namespace: OwnedNamespace,
    @Param('connectionId') connectionId: string,
  ): Promise<SuccessDto> {
    const { id } = await this.connectionReader.find(namespace, connectionId, 'uplink');
    await this.uplinkTunnels.requirePaired(id);
    return { success: true };
  }
}
