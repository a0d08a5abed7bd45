import { Type } from 'class-transformer';
import { IsObject, IsString, Matches, MaxLength, ValidateNested } from 'class-validator';
import { ClosedBody } from '../../../platform/http/input.pipe.js';
import { ObjectSchemaDto } from '../tools/connection-tools.dto.js';
import { AsGiven, Omittable } from '../core/connection.validators.js';

/** Something a server tells of when it happens. */
export class TriggerDto {
  /** @example 'page.updated' */
  name: string;
  /** How it can be told: `webhook`. */
  delivery: string[];
  description?: string;
  /** What a subscription may be narrowed by. */
  inputSchema?: ObjectSchemaDto;
  /** What is told. */
  payloadSchema?: ObjectSchemaDto;
}

export const triggerExample = {
  name: 'page.updated',
  delivery: ['webhook'],
  description: 'A page was changed.',
  inputSchema: { type: 'object', properties: { pageId: { type: 'string' } } },
};

/** Where events are sent to. */
export class DeliveryPlaceDto {
  /**
   * Receives the events: https.
   * @example 'https://app.example.com/hooks/pages'
   */
  @IsString()
  @MaxLength(2_048)
  @Matches(/^https:\/\//i, { message: 'url must begin with https://' })
  url: string;
}

/** Where events are sent to, and what they are signed with. */
export class DeliveryDto extends DeliveryPlaceDto {
  /**
   * Signs the events (Standard Webhooks): `whsec_` and the base64 of 24 to 64 bytes. Goes to the MCP server and is not kept.
   * @example 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
   */
  @IsString()
  @MaxLength(128)
  @Matches(/^whsec_/, { message: 'secret must begin with whsec_' })
  secret: string;
}

@ClosedBody()
export class UnsubscribeTriggerDto {
  /** What the subscription is narrowed by: at most 16 KB of JSON. Default: nothing. */
  @Omittable()
  @AsGiven()
  @IsObject()
  params?: Record<string, unknown>;

  @IsObject()
  @ValidateNested()
  @Type(() => DeliveryPlaceDto)
  delivery: DeliveryPlaceDto;
}

@ClosedBody()
export class SubscribeTriggerDto {
  /** What the subscription is narrowed by: at most 16 KB of JSON. Default: nothing. */
  @Omittable()
  @AsGiven()
  @IsObject()
  params?: Record<string, unknown>;

  @IsObject()
  @ValidateNested()
  @Type(() => DeliveryDto)
  delivery: DeliveryDto;
}

export class TriggerSubscriptionDto {
  /**
   * The same for the same trigger, params and URL; stands in the `X-MCP-Subscription-Id` header of events.
   * @example 'trg_5f2c9a0d4b7e1c3f8a6d2e4b9c1f7a30'
   */
  id: string;
  /**
   * Subscribe again before this time, or events end.
   * @example '2026-11-20T11:15:00.000Z'
   */
  refreshBefore: string;
}
