import { ApiProperty } from '#api-docs';
import { IsIn, IsOptional, IsString } from 'class-validator';
import { IsPrintable, IsWhole } from '../../../platform/http/input-values.js';
import { grantLevels, roles, type GrantLevel, type Role } from '../../auth/access.types.js';
import { usableStates, type UsableState } from './usable.types.js';
import { GrantAccountDto, LastUseDto } from '../grant.dto.js';

const sections = ['mine', 'granted', 'all'] as const;
export type UsableSection = (typeof sections)[number];

const usableKinds = ['connection', 'server', 'namespace'] as const;
export type UsableKind = (typeof usableKinds)[number];

const openingRules = ['owner', 'member', 'grant'] as const;

export class UsableQueryDto {
  /** `mine`: targets of your account and your organizations. `granted`: targets of others. `all`: both. */
  @ApiProperty({ enum: sections })
  @IsOptional()
  @IsIn(sections)
  section?: UsableSection = 'mine';

  /** A text in the address, the title or the name of the owner, or words in the description or the tools of the server. */
  @IsOptional()
  @IsPrintable(255, 1)
  q?: string;

  /** The id or the name of the account that owns it. */
  @IsOptional()
  @IsPrintable(255, 1)
  owner?: string;

  /**
   * `needs`: connections that wait for you: `auth_required` and `input_required`. `works`: published servers, and connections
   * whose last call succeeded. `broken`: suspended ones, and the others that were called. `unused`: connections that nobody
   * has called.
   */
  @ApiProperty({ enum: usableStates })
  @IsOptional()
  @IsIn(usableStates)
  state?: UsableState;

  /** Rows per page. */
  @IsWhole(1, 100)
  limit?: number = 50;

  /** The `nextCursor` of the previous page. */
  @IsOptional()
  @IsString()
  cursor?: string;
}

/** The strongest grant of the caller. */
export class UsableGrantDto {
  /** @example '7c9e6679-7425-40de-944b-e07fc1f90ae7' */
  id: string;
  /**
   * Name of the account or organization that has it. Absent: everybody.
   * @example 'team'
   */
  subject?: string;
  /**
   * Name of the account that granted it. Absent after its deletion.
   * @example 'ada'
   */
  grantedBy?: string;
  /** @example '2026-11-20T10:15:00.000Z' */
  createdAt: string;
  /** Time at which the grant expires. Absent: it does not expire. */
  expiresAt?: string;
}

/** Access of the account, regardless of the scopes of the key. */
export class UsableAccessDto {
  @ApiProperty({ enum: openingRules })
  rule: (typeof openingRules)[number];
  /** `call`, or `manage`, which includes it. */
  @ApiProperty({ enum: grantLevels })
  level: GrantLevel;
  /** Role in the organization that owns the target, with `member`. */
  @ApiProperty({ enum: roles })
  role?: Role;
  /** The grant, with `grant`. */
  grant?: UsableGrantDto;
  /** Number of the tools that grants open. Absent: all. */
  @ApiProperty({ type: 'integer' })
  tools?: number;
}

/** Status of a connection, with the kind of the reason but without content of the MCP server. */
export class UsableStatusDto {
  /**
   * The `status.state` of the connection.
   * @example 'connected'
   */
  state: string;
  /**
   * The `status.reason` of the connection.
   * @example 'ok'
   */
  reason: string;
  /** @example '2026-11-20T10:15:00.000Z' */
  since: string;
  /** The `status.setupUrl` of a connection that waits for a user: only for callers that can manage it. */
  setupUrl?: string;
}

export class UsableWaitingDto {
  /** Number of connections, whatever their state. */
  @ApiProperty({ type: 'integer' })
  connections: number;
  /** Number of connections that wait for a login: `auth_required`. */
  @ApiProperty({ type: 'integer' })
  logins: number;
  /** Number of connections that wait for a value: `input_required`. */
  @ApiProperty({ type: 'integer' })
  values: number;
}

export class UsableDto {
  /** `namespace`: the connections of a namespace that have metadata, such as those of an app's end users, as one row. */
  @ApiProperty({ enum: usableKinds })
  kind: UsableKind;
  /**
   * Qualified name of a server; absent for other kinds.
   * @example 'acme/weather'
   */
  qualifiedName?: string;
  /** @example 'acme' */
  namespace: string;
  /** Id of a connection; absent for other kinds. */
  connectionId?: string;
  /** Title of the target; absent for a namespace. */
  title?: string;
  /** Accounts that cannot manage a connection receive only a `data:` URL: another URL would reveal where its server runs. */
  iconUrl: string | null;
  /** The account that owns it. */
  owner: GrantAccountDto;
  access: UsableAccessDto;
  /** Number of the connections of a namespace that match; absent for other kinds. */
  @ApiProperty({ type: 'integer' })
  connections?: number;
  /** Number of the connections of a namespace that wait for you. Absent if there are none or you request another `state`. */
  waiting?: UsableWaitingDto;
  /** Status of a connection; absent for other kinds. */
  status?: UsableStatusDto;
  /** True if the operator suspended the target or its namespace: calls are rejected. */
  suspended?: true;
  /** The last use; absent before the first call. */
  lastUse?: LastUseDto;
}

/** Counts rows whatever the `state` of the request. A namespace is counted in each state of its connections. */
export class UsableCountsDto {
  @ApiProperty({ type: 'integer' })
  all: number;
  @ApiProperty({ type: 'integer' })
  needs: number;
  @ApiProperty({ type: 'integer' })
  works: number;
  @ApiProperty({ type: 'integer' })
  broken: number;
  @ApiProperty({ type: 'integer' })
  unused: number;
}

export class UsableListDto {
  usable: UsableDto[];
  counts: UsableCountsDto;
  /** The `cursor` of the next page; null on the last one. */
  nextCursor: string | null;
}
