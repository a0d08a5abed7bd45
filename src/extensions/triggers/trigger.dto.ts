import { Type } from 'class-transformer';
import { IsObject, IsString, Matches, MaxLength, ValidateNested } from 'class-validator';
import { AsGiven, ClosedBody, ObjectSchemaDto, Omittable } from '../../extension.js';

/** A kind of event that a server sends. */
export class TriggerDto {
  /** @example 'page.updated' */
  name: string;
  /** The ways of delivery: `webhook`. */
  delivery: string[];
  description?: string;
  /** The schema of the params that narrow a subscription. */
  inputSchema?: ObjectSchemaDto;
  /** The schema of the events. */
  payloadSchema?: ObjectSchemaDto;
}

export const triggerExample = {
  name: 'page.updated',
  delivery: ['webhook'],
  description: 'A page was changed.',
  inputSchema: { type: 'object', properties: { pageId: { type: 'string' } } },
};

/** The receiver of events. */
export class DeliveryPlaceDto {
  /**
   * The https URL that receives the events.
   * @example 'https://app.example.com/hooks/pages'
   */
  @IsString()
  @MaxLength(2_048)
  @Matches(/^https:\/\//i, { message: 'url must begin with https://' })
  url: string;
}

/** The receiver of events, and the secret that signs them. */
export class DeliveryDto extends DeliveryPlaceDto {
  /**
   * The secret that signs the events (Standard Webhooks): `whsec_` and the base64 of 24 to 64 bytes. Passed to the MCP server and not stored.
   * @example 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
   */
  @IsString()
  @MaxLength(128)
  @Matches(/^whsec_/, { message: 'secret must begin with whsec_' })
  secret: string;
}

class TriggerParamsDto {
  /** The params that narrow the subscription: at most 16 KB of JSON. Default: none. */
  @Omittable()
  @AsGiven()
  @IsObject()
  params?: Record<string, unknown>;
}

@ClosedBody()
export class UnsubscribeTriggerDto extends TriggerParamsDto {
  @IsObject()
  @ValidateNested()
  @Type(() => DeliveryPlaceDto)
  delivery: DeliveryPlaceDto;
}

@ClosedBody()
export class SubscribeTriggerDto extends TriggerParamsDto {
  @IsObject()
  @ValidateNested()
  @Type(() => DeliveryDto)
  delivery: DeliveryDto;
}

export class TriggerSubscriptionDto {
  /**
   * Id of the subscription, the same for the same trigger, params and URL; sent in the `X-MCP-Subscription-Id` header of events.
   * @example 'trg_5f2c9a0d4b7e1c3f8a6d2e4b9c1f7a30'
   */
  id: string;
  /**
   * Time at which the subscription expires unless you subscribe again.
   * @example '2026-11-20T11:15:00.000Z'
   */
  refreshBefore: string;
}
