import { Body, Delete, Get, HttpCode, Param, Post } from '@nestjs/common';
import { ApiOkResponse, ApiParam, ApiTags } from '#api-docs';
import {
  Access,
  ApiErrors,
  callableConnections,
  type Caller,
  ConnectionController,
  CurrentCaller,
} from '../../extension.js';
import { CurrentNamespace, type OwnedNamespace, ownConnections, SuccessDto } from '../../extension.js';
import {
  SubscribeTriggerDto,
  TriggerDto,
  triggerExample,
  TriggerSubscriptionDto,
  UnsubscribeTriggerDto,
} from './trigger.dto.js';
import { TriggersService } from './triggers.service.js';

const triggerParam = { name: 'triggerName', description: "The trigger's name.", example: 'page.updated' };

const failures = [
  404,
  { status: 409, text: 'The MCP server requires authorization.', code: 'auth_required' },
  {
    status: 502,
    text: 'The MCP server is down, or refused the request.',
    message: 'Nothing listens on 127.0.0.1:3001: is the server running, and is the port right?',
  },
  { status: 503, text: 'No local server is paired with the connection.', code: 'uplink_disconnected' },
  { status: 504, text: 'The MCP server did not answer in time.' },
];

@ApiTags('Triggers')
@ConnectionController('.triggers')
export class TriggersController {
  constructor(private readonly triggersService: TriggersService) {}

  /** List the triggers of a connection. Preview. The list is empty for a server without triggers. */
  @Get()
  @Access('connections:read', callableConnections)
  @ApiOkResponse({ type: [TriggerDto], example: [triggerExample] })
  @ApiErrors(...failures)
  list(
    @CurrentCaller() caller: Caller,
    @CurrentNamespace() namespace: OwnedNamespace,
    @Param('connectionId') id: string,
  ): Promise<TriggerDto[]> {
    return this.triggersService.list(caller, { namespace: namespace.name, id });
  }

  /** Get one trigger. Preview. */
  @Get(':triggerName')
  @ApiParam(triggerParam)
  @Access('connections:read', callableConnections)
  @ApiOkResponse({ type: TriggerDto, example: triggerExample })
  @ApiErrors(...failures)
  get(
    @CurrentCaller() caller: Caller,
    @CurrentNamespace() namespace: OwnedNamespace,
    @Param('connectionId') id: string,
    @Param('triggerName') name: string,
  ): Promise<TriggerDto> {
    return this.triggersService.get(caller, { namespace: namespace.name, id }, name);
  }

  /**
   * Subscribe to a trigger. Preview. The same params and URL extend an existing subscription. The MCP server sends the
   * events itself to the URL, signed with the secret (Standard Webhooks).
   */
  @Post(':triggerName')
  @HttpCode(200)
  @ApiParam(triggerParam)
  @Access('connections:execute', ownConnections)
  @ApiOkResponse({ type: TriggerSubscriptionDto })
  @ApiErrors(400, ...failures)
  subscribe(
    @CurrentCaller() caller: Caller,
    @CurrentNamespace() namespace: OwnedNamespace,
    @Param('connectionId') id: string,
    @Param('triggerName') name: string,
    @Body() body: SubscribeTriggerDto,
  ): Promise<TriggerSubscriptionDto> {
    return this.triggersService.subscribe(caller, { namespace: namespace.name, id }, name, body);
  }

  /** Delete the subscription with these params and this URL. Preview. A subscription that is not renewed expires by itself. */
  @Delete(':triggerName')
  @ApiParam(triggerParam)
  @Access('connections:execute', ownConnections)
  @ApiErrors(400, ...failures)
  unsubscribe(
    @CurrentCaller() caller: Caller,
    @CurrentNamespace() namespace: OwnedNamespace,
    @Param('connectionId') id: string,
    @Param('triggerName') name: string,
    @Body() body: UnsubscribeTriggerDto,
  ): Promise<SuccessDto> {
    return this.triggersService.unsubscribe(caller, { namespace: namespace.name, id }, name, body);
  }
}
