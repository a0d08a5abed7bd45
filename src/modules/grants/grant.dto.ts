import { ApiProperty, IntersectionType, PickType } from '#api-docs';
import { Type } from 'class-transformer';
import {
  ArrayMaxSize,
  ArrayNotEmpty,
  Equals,
  IsIn,
  IsISO8601,
  IsObject,
  Length,
  NotContains,
  ValidateIf,
  ValidateNested,
} from 'class-validator';
import { IsFlag, IsPrintable, Omittable } from '../../platform/http/input-values.js';
import { ClosedBody } from '../../platform/http/input.pipe.js';
import { PaginationDto } from '../../platform/http/pagination.dto.js';
import { grantLevels, type GrantLevel } from '../auth/access.types.js';
import { targetKinds, type TargetKind } from '../targets/target.types.js';
import type { GivenGrantRow, GrantedRow, GrantRow, GrantTerms, LastUseRow, ListedGrantRow } from './grant.types.js';

@ClosedBody()
export class GrantToolsDto {
  /**
   * 1 to 100 exact names of tools, without `*`.
   * @example ['search', 'read_file']
   */
  @ArrayNotEmpty({ message: '$property must hold at least one name' })
  @ArrayMaxSize(100, { message: '$property must hold at most 100 names' })
  @Length(1, 255, { each: true })
  @NotContains('*', { each: true, message: '$property must hold exact names, without "*"' })
  allow: string[];
}

@ClosedBody()
export class SetGrantDto {
  /**
   * The id or the name of the other account, or of an organization, whose members have it too. Or `everyone`.
   * @example 'bob'
   */
  @ValidateIf(({ everyone }: SetGrantDto) => everyone === undefined)
  @IsPrintable(255, 1)
  account?: string;

  /** True for a grant to everybody with an account, instead of `account`. */
  @Omittable()
  @Equals(true)
  everyone?: true;

  /** `call`: find and call the target. `manage`: everything except its deletion, its transfer and its grants. */
  @ApiProperty({ enum: grantLevels })
  @IsIn(grantLevels)
  level: GrantLevel;

  /** Grants only these tools: no resources, no prompts, and no tools that the server adds later. Requires the `level` `call`. */
  @Omittable()
  @IsObject()
  @ValidateNested()
  @Type(() => GrantToolsDto)
  tools?: GrantToolsDto;

  /**
   * Time at which the grant expires, in the future. Absent: it does not expire.
   * @example '2027-11-20T00:00:00.000Z'
   */
  @Omittable()
  @IsISO8601({ strict: true })
  expiresAt?: string;
}

export class WithdrawGrantQueryDto {
  /** Cancels the running calls of the grant immediately, with the outcome `canceled`: `1`, `0`, `true` or `false`. */
  @IsFlag()
  now?: boolean;
}

export class GrantAccountDto {
  /** @example '4f1f2f54-8f8c-4a8e-9d0e-3c1f1b0a2d11' */
  id: string;
  /** @example 'bob' */
  name: string;
}

export class GrantDto {
  /** @example '7c9e6679-7425-40de-944b-e07fc1f90ae7' */
  id: string;
  /** The account that may use it. Absent with `everyone`. */
  account?: GrantAccountDto;
  /** True if the grantee is everybody with an account. */
  everyone?: true;
  @ApiProperty({ enum: grantLevels })
  level: GrantLevel;
  /** The only granted tools. Absent: all tools, resources and prompts. */
  tools?: GrantToolsDto;
  /**
   * Time at which the grant expires. Absent: it does not expire.
   * @example '2027-11-20T00:00:00.000Z'
   */
  expiresAt?: string;
  /** @example '2026-11-20T10:15:00.000Z' */
  createdAt: string;
}

export class LastUseDto {
  /** @example '2026-11-20T10:15:00.000Z' */
  at: string;
  /** The name that the MCP client gave itself; null if it gave none, and for REST. */
  client: string | null;
  /** Kind of the credential. */
  @ApiProperty({ enum: ['key', 'oauth', 'session'] })
  kind: string;
  /**
   * Id of the credential.
   * @example '0b5c7f7e-6c0f-4a77-9d5c-2f5b8d3f6a10'
   */
  credential: string;
}

export class ListedGrantDto extends GrantDto {
  /**
   * Name of the account that granted it; null for one that was deleted.
   * @example 'ada'
   */
  grantedBy: string | null;
  /** The last use of the target by this account. Absent before the first, for an organization, and for everybody. */
  lastUse?: LastUseDto;
}

export class GrantListDto {
  grants: ListedGrantDto[];
  pagination: PaginationDto;
}

export class ReceivedGrantDto {
  /** @example '7c9e6679-7425-40de-944b-e07fc1f90ae7' */
  id: string;
  @ApiProperty({ enum: targetKinds })
  kind: TargetKind;
  /** Qualified name of a server; absent for other kinds. */
  qualifiedName?: string;
  /**
   * The namespace that holds it.
   * @example 'acme'
   */
  namespace: string;
  /**
   * Id of a connection; absent for other kinds.
   * @example 'my-first'
   */
  connectionId?: string;
  /** The account that owns it. */
  owner: GrantAccountDto;
  @ApiProperty({ enum: grantLevels })
  level: GrantLevel;
  /** The only granted tools. Absent: all tools, resources and prompts. */
  tools?: GrantToolsDto;
  /**
   * Time at which the grant expires. Absent: it does not expire.
   * @example '2027-11-20T00:00:00.000Z'
   */
  expiresAt?: string;
  /** @example '2026-11-20T10:15:00.000Z' */
  createdAt: string;
}

export class ReceivedGrantListDto {
  grants: ReceivedGrantDto[];
  pagination: PaginationDto;
}

const NAMED = ['kind', 'qualifiedName', 'namespace', 'connectionId'] as const;

export class GivenGrantDto extends IntersectionType(GrantDto, PickType(ReceivedGrantDto, NAMED)) {
  /**
   * Name of the account that granted it; null for one that was deleted.
   * @example 'ada'
   */
  grantedBy: string | null;
}

export class GivenGrantListDto {
  grants: GivenGrantDto[];
  pagination: PaginationDto;
}

export function toGrantDto({ id, accountId, accountName, createdAt, ...terms }: GrantRow): GrantDto {
  return {
    id,
    ...(accountId !== null && accountName !== null
      ? { account: { id: accountId, name: accountName } }
      : { everyone: true as const }),
    ...termsOf(terms),
    createdAt: createdAt.toISOString(),
  };
}

export function toListedGrantDto(row: ListedGrantRow): ListedGrantDto {
  return { ...toGrantDto(row), grantedBy: row.grantedBy, ...lastUseOf(row) };
}

export function lastUseOf({ usedAt, usedClient, usedKind, usedCredential }: LastUseRow): { lastUse?: LastUseDto } {
  if (usedAt === null) return {};
  const [kind, credential] = [usedKind ?? '', usedCredential ?? ''];
  return { lastUse: { at: usedAt.toISOString(), client: usedClient, kind, credential } };
}

export function toReceivedGrantDto(row: GrantedRow): ReceivedGrantDto {
  const { id, accountId, accountName, createdAt } = row;
  return {
    id,
    ...namesOf(row),
    owner: { id: accountId, name: accountName },
    ...termsOf(row),
    createdAt: createdAt.toISOString(),
  };
}

export function toGivenGrantDto(row: GivenGrantRow): GivenGrantDto {
  return { ...toGrantDto(row), ...namesOf(row), grantedBy: row.grantedBy };
}

function namesOf({
  namespace,
  serverName,
  connectionId,
}: Pick<GrantedRow, 'namespace' | 'serverName' | 'connectionId'>): Pick<ReceivedGrantDto, (typeof NAMED)[number]> {
  return {
    kind: serverName !== null ? 'server' : connectionId !== null ? 'connection' : 'namespace',
    ...(serverName !== null && { qualifiedName: serverName === '' ? namespace : `${namespace}/${serverName}` }),
    namespace,
    ...(connectionId !== null && { connectionId }),
  };
}

function termsOf({ level, tools, expiresAt }: GrantTerms): Pick<GrantDto, 'level' | 'tools' | 'expiresAt'> {
  return { level, ...(tools && { tools: { allow: tools } }), ...(expiresAt && { expiresAt: expiresAt.toISOString() }) };
}
