import { ApiProperty } from '@nestjs/swagger';
import { ArrayMaxSize, ArrayMinSize, IsArray, IsIn, IsUrl } from 'class-validator';

/** The events that a webhook can report. */
export const WEBHOOK_EVENTS = [
  'release.finished',
  'connection.state',
  'contract.changed',
  'server.created',
  'server.changed',
  'server.deleted',
] as const;

export class AddWebhookDto {
  @ApiProperty({ description: 'Receives a POST for each event.', example: 'https://example.com/slipway' })
  @IsUrl({ protocols: ['http', 'https'], require_protocol: true, require_tld: false })
  url: string;

  @ApiProperty({ enum: WEBHOOK_EVENTS, isArray: true, example: ['release.finished'] })
  @IsArray()
  @ArrayMinSize(1)
  @ArrayMaxSize(WEBHOOK_EVENTS.length)
  @IsIn(WEBHOOK_EVENTS, { each: true })
  events: string[];
}

export class WebhookDto {
  @ApiProperty({ format: 'uuid' })
  id: string;

  @ApiProperty({ example: 'https://example.com/slipway' })
  url: string;

  @ApiProperty({ type: [String], example: ['release.finished'] })
  events: string[];
}

export class AddedWebhookDto extends WebhookDto {
  @ApiProperty({ description: 'Key of the signatures, shown only here.', example: 'whsec_c2VjcmV0' })
  secret: string;
}

export class WebhooksDto {
  @ApiProperty({ type: [WebhookDto] })
  webhooks: WebhookDto[];
}
