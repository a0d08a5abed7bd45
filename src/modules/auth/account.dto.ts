import { ApiProperty } from '#api-docs';
import {
  ArrayMaxSize,
  ArrayNotEmpty,
  IsBoolean,
  IsIn,
  IsInt,
  IsISO8601,
  IsObject,
  IsOptional,
  IsString,
  IsTimeZone,
  Max,
  Min,
  ValidateIf,
} from 'class-validator';
import { PageQueryDto, PaginationDto } from '../../platform/http/pagination.dto.js';
import { IsFlag, IsPrintable, Omittable } from '../../platform/http/input-values.js';
import { accountKinds, type AccountKind, type Account, type ApiKey } from './account.entity.js';

export class AccountDto {
  /** @example '4f1f2f54-8f8c-4a8e-9d0e-3c1f1b0a2d11' */
  id: string;
  /** @example 'acme' */
  name: string;
  @ApiProperty({ enum: accountKinds })
  kind: AccountKind;
  /** True for an account that manages accounts and keys. */
  isOperator: boolean;
  /** True while its API keys are refused and nobody can sign in. */
  disabled: boolean;
  /**
   * The IANA time zone of the account's pages; null for UTC.
   * @example 'Europe/Berlin'
   */
  timeZone: string | null;
  /** @example '2026-11-20T10:15:00.000Z' */
  createdAt: string;
}

/** Ways in which an account signs in. */
const signIns = ['password', 'identity', 'invited', 'none'] as const;

export class ListedAccountDto extends AccountDto {
  /**
   * `password`: a user signs in with a password; `identity`: only through the company's directory; `invited`: a link for the first
   * password is open; `none`: API keys only.
   */
  @ApiProperty({ enum: signIns })
  signIn: (typeof signIns)[number];
  /**
   * The reason why the account's keys, browser sessions and client authorizations are suspended until the user signs in through the
   * directory; null if they are not.
   * @example 'Since 2026-11-20 10:15 UTC: Example Staff rejected two checks.'
   */
  suspended: string | null;
  /**
   * Last use of an API key or of a browser that is signed in, up to an hour behind; null without one on record.
   * @example '2026-11-20T10:15:00.000Z'
   */
  lastSeenAt: string | null;
}

export class AccountsQueryDto extends PageQueryDto {
  /** Only accounts whose name contains this text, ignoring case. */
  @Omittable()
  @IsPrintable(255)
  q?: string;

  /** Only accounts of this kind. */
  @Omittable()
  @IsIn(accountKinds)
  @ApiProperty({ enum: accountKinds, required: false })
  kind?: AccountKind;
}

export class AccountListDto {
  accounts: ListedAccountDto[];
  pagination: PaginationDto;
}

export class CreateAccountDto {
  /**
   * A unique name, 1 to 255 characters.
   * @example 'acme'
   */
  @IsPrintable(255, 1)
  name: string;

  @IsIn(accountKinds)
  kind: AccountKind;
}

export class UpdateAccountDto {
  /**
   * True rejects the API keys of the account and revokes its browser sessions and invitations; false lets the keys work again.
   *
   * @example false
   */
  @Omittable()
  @IsBoolean()
  disabled?: boolean;

  /** True makes the account an operator, false removes the role. Cannot be combined with `disabled`. */
  @Omittable()
  @IsBoolean()
  isOperator?: boolean;
}

export class TimeZoneDto {
  /**
   * An IANA time zone; null for UTC.
   * @example 'Europe/Berlin'
   */
  @ValidateIf(({ timeZone }: TimeZoneDto) => timeZone !== null)
  @IsTimeZone({ message: '$property must be a zone such as Europe/Berlin' })
  timeZone: string | null;
}

export class ApiKeyDto {
  /** @example '0b5c7f7e-6c0f-4a77-9d5c-2f5b8d3f6a10' */
  id: string;
  /** @example 'laptop' */
  name: string;
  /**
   * The key's first characters.
   * @example 'slipway_Qw3x'
   */
  prefix: string;
  /** @example '2026-11-20T10:15:00.000Z' */
  createdAt: string;
  /**
   * Time of the last use, up to a second behind; null if unused.
   * @example '2026-11-20T10:15:00.000Z'
   */
  lastUsedAt: string | null;
  /**
   * The client's address of the last use; null if unused.
   * @example '203.0.113.7'
   */
  lastAddress: string | null;
  /**
   * Expiry; null if it does not expire.
   * @example '2027-11-20T00:00:00.000Z'
   */
  expiresAt: string | null;
  /**
   * Rights of the key: `read`, `call`, `publish` or `manage`, each alone for all namespaces or as `call:acme` for one. Null:
   * all rights of the account.
   * @example ['call:acme', 'read']
   */
  scopes: string[] | null;
  /**
   * Id of the key that replaces it after a rotation; null without one.
   * @example '7c9e6679-7425-40de-944b-e07fc1f90ae7'
   */
  replacedBy: string | null;
  /**
   * Id of the API key that created or rotated this key, kept after its own revocation; null if the service created this key.
   * @example '2c1d8a52-0f4e-4b0f-8a53-6f6d1f4a9c21'
   */
  madeBy: string | null;
}

export class CreatedApiKeyDto extends ApiKeyDto {
  /**
   * The key itself. No other response contains it.
   * @example 'slipway_Qw3xZ0mJb6v1cT8r2yKqL5nD9sF4hG7jA0eWuXoPiR1'
   */
  key: string;
}

export class ApiKeyListDto {
  apiKeys: ApiKeyDto[];
}

export class CreateApiKeyDto {
  /**
   * Purpose of the key, 1 to 255 characters.
   * @example 'laptop'
   */
  @IsPrintable(255, 1)
  name: string;

  /**
   * Expiry, in the future and not later than that of the key of this request, which is the default.
   * @example '2027-11-20T00:00:00.000Z'
   */
  @IsOptional()
  @IsISO8601({ strict: true })
  expiresAt?: string;

  /**
   * Rights of the key: `read`, `call`, `publish` and `manage`, each alone for all namespaces or as `call:acme` for one.
   * Omitted: all rights of the account.
   * @example ['call:acme', 'read']
   */
  @IsOptional()
  @ArrayNotEmpty({ message: '$property must hold at least one scope' })
  @ArrayMaxSize(100, { message: '$property must hold at most 100 scopes' })
  @IsString({ each: true })
  scopes?: string[];
}

export class RotateApiKeyDto {
  /**
   * Expiry of the new key, in the future and not later than that of the key of this request, which is the default.
   * @example '2027-11-20T00:00:00.000Z'
   */
  @IsOptional()
  @IsISO8601({ strict: true })
  expiresAt?: string;

  /** How many seconds the old key remains valid, unless it expires earlier. */
  @IsOptional()
  @IsInt()
  @Min(0)
  @Max(7 * 24 * 60 * 60)
  overlapSeconds?: number = 24 * 60 * 60;
}

export class RevokeApiKeyQueryDto {
  /** Also revokes the keys that were created with this key, directly or through other keys, and the unused invitations, grants, members and operators created with any of them: `1`, `0`, `true` or `false`. */
  @IsFlag()
  made?: boolean;

  /** Cancels the running calls of these keys immediately, with the outcome `canceled`: `1`, `0`, `true` or `false`. */
  @IsFlag()
  now?: boolean;
}

export class RevokedApiKeysDto {
  success: boolean;
  /**
   * Ids of the revoked keys.
   * @example ['0b5c7f7e-6c0f-4a77-9d5c-2f5b8d3f6a10']
   */
  revoked: string[];
}

export class UsedApiKeyDto {
  /** @example '0b5c7f7e-6c0f-4a77-9d5c-2f5b8d3f6a10' */
  id: string;
  /** @example 'laptop' */
  name: string;
  /**
   * Expiry; null if it does not expire.
   * @example '2027-11-20T00:00:00.000Z'
   */
  expiresAt: string | null;
}

export class AccessDto {
  account: AccountDto;
  apiKey: UsedApiKeyDto;
  /**
   * Rights of the key; null: all rights of the account.
   * @example ['call:acme']
   */
  scopes: string[] | null;
  /**
   * The rights of the key in plain English, one string for each right.
   * @example ['Read what the account has in the namespace acme, and call its servers and connections.']
   */
  rights: string[];
}

export class AccountLimitDto {
  /** @example 'namespaces' */
  name: string;
  /**
   * Present use; null for limits of requests. The use of logs is that of this UTC day, up to a second behind.
   * @example 3
   */
  used: number | null;
  /** @example 100 */
  limit: number;
}

export class AccountUsageDto {
  limits: AccountLimitDto[];
}

export class SetAccountLimitsDto {
  /**
   * Limits by name; null returns one to its default, and absent ones stay.
   * @example { "namespaces": 500 }
   */
  @ApiProperty({ type: 'object', additionalProperties: { type: 'integer', nullable: true } })
  @IsObject()
  limits: Record<string, unknown>;
}

export function toAccountDto(account: Account): AccountDto {
  return {
    id: account.id,
    name: account.name,
    kind: account.kind,
    isOperator: account.isOperator,
    disabled: account.disabledAt != null,
    timeZone: account.timeZone ?? null,
    createdAt: account.createdAt.toISOString(),
  };
}

export function toApiKeyDto(row: ApiKey): ApiKeyDto {
  return {
    id: row.id,
    name: row.name,
    prefix: row.prefix,
    createdAt: row.createdAt.toISOString(),
    lastUsedAt: row.lastUsedAt?.toISOString() ?? null,
    lastAddress: row.lastAddress ?? null,
    expiresAt: row.expiresAt?.toISOString() ?? null,
    scopes: row.scopes,
    replacedBy: row.replacedBy ?? null,
    madeBy: row.madeBy.at(-1) ?? null,
  };
}
