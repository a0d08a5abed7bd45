import { Body, Controller, Delete, Get, HttpCode, Param, Post } from '@nestjs/common';
import {
  ApiCreatedResponse,
  ApiNoContentResponse,
  ApiOkResponse,
  ApiOperation,
  ApiParam,
  ApiTags,
} from '@nestjs/swagger';
import { Access, ApiErrors, CurrentAccountId, UuidOr404 } from '@slipway/module';
import { AddedWebhookDto, AddWebhookDto, WebhooksDto } from './webhook.dto.js';
import { WebhooksService } from './webhooks.service.js';

const accountId = UuidOr404('Account not found');
const notFound = { status: 404, message: 'Webhook not found' };

@ApiTags('Webhooks')
@ApiParam({ name: 'accountId', description: 'The id of the account, or `me`.', example: 'me' })
@Controller('accounts/:accountId/webhooks')
export class WebhooksController {
  constructor(private readonly webhooksService: WebhooksService) {}

  @Post()
  @Access('webhooks:write', { account: 'accountId', may: 'own' })
  @ApiOperation({ summary: 'Add a webhook' })
  @ApiCreatedResponse({ type: AddedWebhookDto })
  @ApiErrors(400, 403, { status: 404, message: 'Account not found' })
  add(@CurrentAccountId(accountId) id: string, @Body() body: AddWebhookDto): Promise<AddedWebhookDto> {
    return this.webhooksService.add(id, body);
  }

  @Get()
  @Access('webhooks:read', { account: 'accountId', may: 'own' })
  @ApiOperation({ summary: 'List the webhooks of an account' })
  @ApiOkResponse({ type: WebhooksDto })
  @ApiErrors(403, { status: 404, message: 'Account not found' })
  async list(@CurrentAccountId(accountId) id: string): Promise<WebhooksDto> {
    return { webhooks: await this.webhooksService.list(id) };
  }

  @Delete(':webhookId')
  @HttpCode(204)
  @Access('webhooks:write', { account: 'accountId', may: 'own' })
  @ApiOperation({ summary: 'Delete a webhook' })
  @ApiParam({ name: 'webhookId', format: 'uuid' })
  @ApiNoContentResponse()
  @ApiErrors(403, notFound)
  delete(
    @CurrentAccountId(accountId) id: string,
    @Param('webhookId', UuidOr404(notFound.message)) webhookId: string,
  ): Promise<void> {
    return this.webhooksService.delete(id, webhookId);
  }
}
