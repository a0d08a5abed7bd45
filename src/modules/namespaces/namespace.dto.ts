import { PartialType } from '@nestjs/swagger';
import { IsOptional, IsUUID } from 'class-validator';
import { PaginationDto } from '../../platform/http/pagination.dto.js';
import { IsCommaList, IsFlag, IsWhole, IsPrintable } from '../../platform/http/input-values.js';
import type { Namespace } from './namespace.entity.js';

/** A globally unique name that holds servers, skills and connections. */
export class NamespaceDto {
  /** @example 'acme' */
  name: string;
  /** @example '2026-11-20T10:15:00.000Z' */
  createdAt: string;
}

/** Without `fields`, every member is present. */
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

export class NamespaceQueryDto {
  /** Search all namespaces for names that begin like this. */
  @IsOptional()
  @IsPrintable(39)
  q?: string;

  /** Search all namespaces of this account. */
  @IsOptional()
  @IsUUID()
  ownerId?: string;

  /** Search all namespaces that hold servers, or none: `1`, `0`, `true` or `false`. */
  @IsOptional()
  @IsFlag()
  hasServers?: boolean;

  /** Search all namespaces that hold skills, or none: `1`, `0`, `true` or `false`. */
  @IsOptional()
  @IsFlag()
  hasSkills?: boolean;

  /** Page to show, from 1. */
  @IsWhole(1)
  page?: number = 1;

  /** Namespaces per page. */
  @IsWhole(1, 50)
  pageSize?: number = 50;

  /** Members to answer of each namespace, with commas between them. Default: all. */
  @IsOptional()
  @IsCommaList(20)
  fields?: string[];
}

export function toNamespaceDto({ name, createdAt }: Pick<Namespace, 'name' | 'createdAt'>): NamespaceDto {
  return { name, createdAt: createdAt.toISOString() };
}
