import { ApiProperty, PickType } from '#api-docs';
import { Type } from 'class-transformer';
import { IsIn, IsObject, IsOptional, ValidateNested } from 'class-validator';
import { IsPrintable, Omittable } from '../../platform/http/input-values.js';
import { ClosedBody } from '../../platform/http/input.pipe.js';
import { PageQueryDto, PaginationDto } from '../../platform/http/pagination.dto.js';
import { formatQualifiedName, type QualifiedName } from '../servers/server.types.js';
import type { AccessRequest } from './access-request.entity.js';
import { GrantAccountDto, SetGrantDto } from './grant.dto.js';

const requestSides = ['asker', 'decider'] as const;

export class AccessRequestQueryDto extends PageQueryDto {
  /** `asker`: requests that the account made. `decider`: open requests for its servers and those of organizations where it is an owner or editor. */
  @IsOptional()
  @IsIn(requestSides)
  as?: (typeof requestSides)[number] = 'asker';
}

@ClosedBody()
export class AskForAccessDto {
  /**
   * The reason, for the owner of the server.
   * @example 'The forecasts of our dashboard.'
   */
  @IsPrintable(500, 1)
  text: string;
}

@ClosedBody()
export class GrantOfRequestDto extends PickType(SetGrantDto, ['level', 'tools', 'expiresAt']) {}

/** A decision: exactly one of `grant` and `refuse`. */
@ClosedBody()
export class DecideAccessRequestDto {
  /** Grants access. The owner can do so, and editors of an organization for its members. */
  @Omittable()
  @IsObject()
  @ValidateNested()
  @Type(() => GrantOfRequestDto)
  grant?: GrantOfRequestDto;

  /**
   * Declines the request, with this reason for the requester.
   * @example 'Use acme/weather-public.'
   */
  @Omittable()
  @IsPrintable(500, 1)
  refuse?: string;
}

export const requestStates = ['open', 'granted', 'refused'] as const;

export class AccessRequestDto {
  /** @example '7c9e6679-7425-40de-944b-e07fc1f90ae7' */
  id: string;
  /**
   * The server.
   * @example 'acme/weather'
   */
  qualifiedName: string;
  /** The account that asks. */
  account: GrantAccountDto;
  /** @example 'The forecasts of our dashboard.' */
  text: string;
  @ApiProperty({ enum: requestStates })
  state: (typeof requestStates)[number];
  /** The reason of a rejection; null otherwise. */
  answer: string | null;
  /** @example '2026-11-20T10:15:00.000Z' */
  createdAt: string;
  /**
   * Time of the decision; null while the request is open.
   * @example '2026-11-20T10:15:00.000Z'
   */
  decidedAt: string | null;
}

export class AccessRequestListDto {
  requests: AccessRequestDto[];
  pagination: PaginationDto;
}

export type AccessRequestRow = Omit<AccessRequest, 'serverId' | 'decidedBy' | 'grantId'> &
  QualifiedName & { accountName: string };

export function toAccessRequestDto(row: AccessRequestRow): AccessRequestDto {
  const { id, accountId, accountName, text, answer, createdAt, decidedAt } = row;
  let state: AccessRequestDto['state'] = 'open';
  if (decidedAt) state = answer === null ? 'granted' : 'refused';
  return {
    id,
    qualifiedName: formatQualifiedName(row),
    account: { id: accountId, name: accountName },
    text,
    state,
    answer,
    createdAt: createdAt.toISOString(),
    decidedAt: decidedAt?.toISOString() ?? null,
  };
}
