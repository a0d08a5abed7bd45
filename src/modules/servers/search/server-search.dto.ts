import { ApiProperty, PartialType } from '#api-docs';
import { IsOptional, IsUUID } from 'class-validator';
import { visibilities, type Visibility } from '../../targets/target.types.js';
import { PaginationDto } from '../../../platform/http/pagination.dto.js';
import { IsCommaList, IsFlag, IsOptionalText, IsWhole } from '../../../platform/http/input-values.js';

/** Filters of servers, all of which must match. Without `q`, the most used servers come first; of equally used ones, the newest. */
export class ServerQueryDto {
  /** Words to look for in names, descriptions and names of tools; misspelt and half-written ones are found too. */
  @IsOptionalText(500)
  q?: string;

  /** Page to show, from 1. */
  @IsWhole(1)
  page?: number = 1;

  /** Servers per page. */
  @IsWhole(1, 100)
  pageSize?: number = 10;

  /** Number of best matches to page through, with `q`. */
  @IsWhole(10, 500)
  topK?: number = 500;

  /** Fields to return for each server, separated by commas. Default: all. */
  @IsCommaList(50)
  fields?: string[];

  /** Only servers with one of these ids: at most 100, separated by commas. */
  @IsCommaList(100)
  @IsUUID(undefined, { each: true, message: 'ids must hold ids of servers' })
  ids?: string[];

  /** Only the server of this name. Older; `GET /servers/{qualifiedName}` answers more. */
  @ApiProperty({ deprecated: true })
  @IsOptionalText(255)
  qualifiedName?: string;

  /** Only servers of this namespace; of your own also the unlisted ones. */
  @IsOptionalText(255)
  namespace?: string;

  /** Only servers of this account; with your own id also the unlisted ones. */
  @IsOptional()
  @IsUUID()
  ownerId?: string;

  /** Only servers whose repository has this owner. */
  @IsOptionalText(255)
  repoOwner?: string;

  /** Only servers whose repository has this name. */
  @IsOptionalText(255)
  repoName?: string;

  /** Only servers that are reached over the network, or only others: `1`, `0`, `true` or `false`. */
  @IsFlag()
  remote?: boolean;

  /** Only servers with a current release, or only others: `1`, `0`, `true` or `false`. */
  @IsFlag()
  isDeployed?: boolean;

  /** Only servers that the operator verified, or only others: `1`, `0`, `true` or `false`. */
  @IsFlag()
  verified?: boolean;

  /** Only servers that another service manages: there are none here. */
  @IsFlag()
  smitheryManaged?: boolean;

  /** Without `q`: lists servers in a random order. The same seed gives the same order on every page. */
  @IsWhole(Number.MIN_SAFE_INTEGER)
  seed?: number;
}

/** A server in a list. */
export class ServerSummaryDto {
  /** @example '3f0c1a52-7c1e-4a57-9a39-6f3a4e2b8d10' */
  id: string;
  /** @example 'acme/weather' */
  qualifiedName: string;
  /** @example 'acme' */
  @ApiProperty({ type: String, nullable: true })
  namespace: string | null;
  /**
   * The part of the name after the slash; empty for a namespace-only server.
   * @example 'weather'
   */
  @ApiProperty({ type: String, nullable: true })
  slug: string | null;
  /** @example 'Weather' */
  displayName: string;
  /** @example 'Forecasts for any place.' */
  description: string;
  /** `private`: only its owner, and whom the owner grants it, find it. */
  @ApiProperty({ enum: visibilities })
  visibility: Visibility;
  /** URL of the icon; needs no key for at least a day. */
  iconUrl: string | null;
  /** True if the operator verified it. */
  verified: boolean;
  /** Number of connections to the server and of calls through it. */
  useCount: number;
  /** True if the current release is called over the network; null without a release. */
  remote: boolean | null;
  /** True if the server has a current release. */
  isDeployed: boolean;
  /** @example '2026-11-20T10:15:00.000Z' */
  createdAt: string;
  /**
   * URL of the server's own page, or of its record here.
   * @example 'https://weather.example.com'
   */
  homepage: string;
  /** False for every server. */
  bySmithery: boolean;
  /** The account that owns it. */
  @ApiProperty({ type: String, nullable: true })
  owner: string | null;
  /** Relevance for `q`, from 0 to 1; null without `q`. */
  score: number | null;
}

/** A listed server; without `fields`, every field is present. */
export class ListedServerDto extends PartialType(ServerSummaryDto) {}

export class ServerListDto {
  servers: ListedServerDto[];
  pagination: PaginationDto;
}

/** Example of a list of servers. */
export const serverListExample = {
  servers: [
    {
      id: '3f0c1a52-7c1e-4a57-9a39-6f3a4e2b8d10',
      qualifiedName: 'acme/weather',
      namespace: 'acme',
      slug: 'weather',
      displayName: 'Weather',
      description: 'Forecasts for any place.',
      visibility: 'public',
      iconUrl: null,
      verified: false,
      useCount: 42,
      remote: true,
      isDeployed: true,
      createdAt: '2026-11-20T10:15:00.000Z',
      homepage: 'https://weather.example.com',
      bySmithery: false,
      owner: '8d0f6a5e-2f57-4a1c-8d3e-0b6f0c4d9a11',
      score: 0.8,
    },
  ],
  pagination: { currentPage: 1, pageSize: 10, totalPages: 1, totalCount: 1 },
};
