import { ApiProperty, PartialType } from '#api-docs';
import { IsOptional, IsUUID, ValidateIf } from 'class-validator';
import { PaginationDto } from '../../platform/http/pagination.dto.js';
import { IsCommaList, IsFlag, IsWhole, IsPrintable, Omittable } from '../../platform/http/input-values.js';
import { ClosedBody } from '../../platform/http/input.pipe.js';
import { shownSuspension, SuspendedDto } from '../auth/suspension.types.js';
import type { Namespace } from './namespace.entity.js';

export class NamespaceDto {
  /** @example 'acme' */
  name: string;
  /** @example '2026-11-20T10:15:00.000Z' */
  createdAt: string;
  /** The suspension by the operator: calls of its servers and connections are rejected. Absent otherwise. */
  suspended?: SuspendedDto;
}

/** A listed namespace; without `fields`, every field is present. */
export class ListedNamespaceDto extends PartialType(NamespaceDto) {}

export class NamespaceListDto {
  namespaces: ListedNamespaceDto[];
  pagination: PaginationDto;
}

export class DeletedNamespaceDto {
  /** Always true. */
  success: boolean;
  /** @example 'acme' */
  name: string;
}

export class ClaimNamespaceDto {
  /**
   * Id of the organization that gets it, where you are an owner or editor. Omitted: your own account.
   * @example '9b2f7c0e-51a3-4c9d-8e55-2f0d6c7b8a91'
   */
  @IsOptional()
  @IsPrintable(255)
  organizationId?: string;
}

@ClosedBody()
export class MoveNamespaceDto {
  /** An organization where you are an owner. */
  @ValidateIf(({ accountId }: MoveNamespaceDto) => accountId === undefined)
  @IsUUID()
  organizationId?: string;

  /** Your own account, or an organization where you are an owner. */
  @Omittable()
  @IsUUID()
  accountId?: string;
}

@ClosedBody()
export class TransferAccountDto {
  /**
   * Id of the account that gets all.
   * @example '9b2f7c0e-51a3-4c9d-8e55-2f0d6c7b8a91'
   */
  @IsUUID()
  to: string;
}

export class TransferredAccountDto {
  /** Always true. */
  success: boolean;
  /**
   * Names of the namespaces that have moved.
   * @example ['acme']
   */
  namespaces: string[];
  /** Number of grants in these namespaces that remain valid. The new owner can list and revoke them. */
  @ApiProperty({ type: 'integer', example: 0 })
  grants: number;
}

export class NamespaceQueryDto {
  /** Search all namespaces whose name begins with this text. */
  @IsOptional()
  @IsPrintable(39)
  q?: string;

  /** Search all namespaces of this account. */
  @IsOptional()
  @IsUUID()
  ownerId?: string;

  /** Search all namespaces with servers, or without servers: `1`, `0`, `true` or `false`. */
  @IsFlag()
  hasServers?: boolean;

  /** Search all namespaces with skills, or without skills: `1`, `0`, `true` or `false`. */
  @IsFlag()
  hasSkills?: boolean;

  /** Page to show, from 1. */
  @IsWhole(1)
  page?: number = 1;

  /** Namespaces per page. */
  @IsWhole(1, 50)
  pageSize?: number = 50;

  /** Fields to return for each namespace, separated by commas. Default: all. */
  @IsCommaList(20)
  fields?: string[];
}

export function toNamespaceDto({
  name,
  createdAt,
  suspended,
}: Pick<Namespace, 'name' | 'createdAt'> & Partial<Pick<Namespace, 'suspended'>>): NamespaceDto {
  return { name, createdAt: createdAt.toISOString(), ...shownSuspension(suspended) };
}
