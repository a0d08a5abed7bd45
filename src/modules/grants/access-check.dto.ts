import { ApiProperty } from '#api-docs';
import { IsOptional, Length, Matches, MaxLength } from 'class-validator';
import { IsPrintable } from '../../platform/http/input-values.js';

const accessRules = [
  'owner',
  'member',
  'grant',
  'public',
  'restricted',
  'private',
  'tool',
  'key',
  'suspended',
  'disabled',
] as const;
type AccessRuleName = (typeof accessRules)[number];

export class AccessCheckQueryDto {
  /** The id or the name of the account that would call. Default: the caller's own. */
  @IsOptional()
  @IsPrintable(255, 1)
  account?: string;

  /**
   * `server:{qualifiedName}`, `connection:{namespace}/{connectionId}` or `namespace:{name}`.
   * @example 'server:acme/weather'
   */
  @MaxLength(400)
  @Matches(/^(?:server:[!-.0-~]+(?:\/[!-.0-~]+)?|connection:[!-.0-~]+\/[!-.0-~]+|namespace:[!-.0-~]+)$/, {
    message: '$property must be server:acme/weather, connection:acme/mine or namespace:acme',
  })
  on: string;

  /** The exact name of a tool. */
  @IsOptional()
  @Length(1, 255)
  tool?: string;
}

export class AccessReasonDto {
  @ApiProperty({ enum: accessRules })
  rule: AccessRuleName;

  /** True for what opens it. */
  opens: boolean;

  /** @example 'ada is "member" of team, which owns it.' */
  message: string;
}

export class AccessCheckDto {
  /** True if the account can call the target, and the tool if the request names one. */
  allowed: boolean;

  /**
   * Name of the account.
   * @example 'ada'
   */
  account: string;

  /** Facts that decide access, those that grant it first. */
  reasons: AccessReasonDto[];
}
