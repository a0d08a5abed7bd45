import { ApiProperty } from '@nestjs/swagger';
import { IsIn, IsOptional } from 'class-validator';
import { IsFlag, IsPrintable } from '../../platform/http/input-values.js';
import { ClosedBody } from '../../platform/http/input.pipe.js';
import { PaginationDto } from '../../platform/http/pagination.dto.js';
import { grantLevels, type GrantLevel } from '../auth/access.types.js';
import { targetKinds, type GrantedRow, type GrantRow, type TargetKind } from './grant.types.js';

@ClosedBody()
export class SetGrantDto {
  /**
   * The id or the name of the other account.
   * @example 'bob'
   */
  @IsPrintable(255, 1)
  account: string;

  /** `call`: find it and call it. `manage`: everything but its deletion, its transfer and its grants. */
  @ApiProperty({ enum: grantLevels })
  @IsIn(grantLevels)
  level: GrantLevel;
}

export class WithdrawGrantQueryDto {
  /** Also cuts the calls that run by the grant, whose outcome is `canceled`: `1`, `0`, `true` or `false`. */
  @IsOptional()
  @IsFlag()
  now?: boolean;
}

/** An account, as grants name it. */
export class GrantAccountDto {
  /** @example '4f1f2f54-8f8c-4a8e-9d0e-3c1f1b0a2d11' */
  id: string;
  /** @example 'bob' */
  name: string;
}

/** What another account may do with a server or a connection. */
export class GrantDto {
  /** @example '7c9e6679-7425-40de-944b-e07fc1f90ae7' */
  id: string;
  /** The account that may use it. */
  account: GrantAccountDto;
  @ApiProperty({ enum: grantLevels })
  level: GrantLevel;
  /** @example '2026-11-20T10:15:00.000Z' */
  createdAt: string;
}

export class GrantListDto {
  grants: GrantDto[];
  pagination: PaginationDto;
}

/** A server or a connection that another account lets this one use. */
export class ReceivedGrantDto {
  /** @example '7c9e6679-7425-40de-944b-e07fc1f90ae7' */
  id: string;
  @ApiProperty({ enum: targetKinds })
  kind: TargetKind;
  /** Of a server: its qualified name. */
  qualifiedName?: string;
  /**
   * The namespace that holds it.
   * @example 'acme'
   */
  namespace: string;
  /**
   * Of a connection: its id.
   * @example 'my-first'
   */
  connectionId?: string;
  /** The account that owns it. */
  owner: GrantAccountDto;
  @ApiProperty({ enum: grantLevels })
  level: GrantLevel;
  /** @example '2026-11-20T10:15:00.000Z' */
  createdAt: string;
}

export class ReceivedGrantListDto {
  grants: ReceivedGrantDto[];
  pagination: PaginationDto;
}

export function toGrantDto({ id, accountId, accountName, level, createdAt }: GrantRow): GrantDto {
  return { id, account: { id: accountId, name: accountName }, level, createdAt: createdAt.toISOString() };
}

export function toReceivedGrantDto(row: GrantedRow): ReceivedGrantDto {
  const { id, namespace, serverName, connectionId, accountId, accountName, level, createdAt } = row;
  return {
    id,
    kind: serverName === null ? 'connection' : 'server',
    ...(serverName !== null && { qualifiedName: serverName === '' ? namespace : `${namespace}/${serverName}` }),
    namespace,
    ...(connectionId !== null && { connectionId }),
    owner: { id: accountId, name: accountName },
    level,
    createdAt: createdAt.toISOString(),
  };
}
