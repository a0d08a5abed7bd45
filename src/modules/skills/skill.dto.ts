import { ApiProperty, PartialType, PickType } from '#api-docs';
import { IsString, Matches, MaxLength, IsInt, IsOptional, IsUUID } from 'class-validator';
import { Type } from 'class-transformer';
import { PaginationDto, PageQueryDto } from '../../platform/http/pagination.dto.js';
import { IsCommaList, IsFlag, IsWhole, IsPrintable } from '../../platform/http/input-values.js';
import { SKILL_SLUG } from './skills.access.js';

export class SkillQueryDto extends PageQueryDto {
  /** Words to look for in slug, name and description; small typos are forgiven. The best matches come first. */
  @IsOptional()
  @IsPrintable(200)
  q?: string;

  /** Only skills of this category. */
  @IsOptional()
  @IsPrintable(100)
  category?: string;

  /** Only skills of this namespace. */
  @IsOptional()
  @IsPrintable(39)
  namespace?: string;

  /** Only skills with this slug. Deprecated: read `/skills/{namespace}/{slug}`. */
  @ApiProperty({ deprecated: true })
  @IsOptional()
  @IsPrintable(64)
  slug?: string;

  /** Only skills of this account. */
  @IsOptional()
  @IsUUID()
  ownerId?: string;

  /** Only skills of verified namespaces, or only others: `1`, `0`, `true` or `false`. There are no verified ones. */
  @IsFlag()
  verified?: boolean;

  /** Number of best matches on all pages together, with `q`. */
  @IsWhole(10, 500)
  topK?: number = 500;

  /** Fields to return for each skill, separated by commas. Default: all. */
  @IsCommaList(50)
  fields?: string[];

  /** Ignored; accepted for clients that send a seed. */
  @ApiProperty({ type: 'integer' })
  @IsOptional()
  @Type(() => Number)
  @IsInt()
  seed?: number;
}

export class SetSkillDto {
  /**
   * The repository, or the page of a folder in it as a browser shows it. Fetched as a zip from GitHub, GitLab, Bitbucket,
   * Gitea and hosts with the same URLs; it must be public.
   * @example 'https://github.com/acme/skills/tree/main/code-review'
   */
  @IsString()
  @MaxLength(1000)
  gitUrl: string;
}

export class CreateSkillDto extends SetSkillDto {
  /**
   * A namespace you own.
   * @example 'acme'
   */
  @IsString()
  namespace: string;

  /** @example 'code-review' */
  @IsString()
  @Matches(SKILL_SLUG, { message: 'slug must be 1 to 64 lower-case letters, digits and hyphens' })
  slug: string;
}

/** A skill as lists show it. */
export class SkillSummaryDto {
  /** @example '7f2c1f0e-4f1d-4c6b-9d9f-6a4f0a3c9b11' */
  id: string;
  /** @example 'acme' */
  namespace: string;
  /** @example 'code-review' */
  slug: string;
  /**
   * `name` of its SKILL.md.
   * @example 'code-review'
   */
  displayName: string;
  /** @example 'Reviews a change for bugs and style. Use it before a merge.' */
  description: string;
  /**
   * The instructions. Null in lists, since they can have a megabyte: read the skill to get them.
   * @example null
   */
  @ApiProperty({ type: String, nullable: true })
  prompt: string | null;
  /**
   * Quality, from 0 to 1. Always 0: Slipway does not measure it.
   * @example 0
   */
  qualityScore: number;
  /** Always false: this service does not verify namespaces. */
  verified: boolean;
  /** Always true: searches find every skill. */
  listed: boolean;
  /** @example '2026-11-20T10:15:00.000Z' */
  createdAt: string;
  /**
   * Stars of the source repository. Always 0: not read from the host.
   * @example 0
   */
  externalStars: number;
  /**
   * Forks of the source repository. Always 0: not read from the host.
   * @example 0
   */
  externalForks: number;
  /**
   * Number of downloads and of reads of SKILL.md, a second or two behind.
   * @example 12
   */
  totalActivations: number;
  /**
   * Distinct users. Always 0: installers read skills without saying who they are.
   * @example 0
   */
  uniqueUsers: number;
  /**
   * `metadata.categories` of its SKILL.md.
   * @example ['code']
   */
  categories: string[];
  /**
   * `metadata.servers` of its SKILL.md: qualified names of MCP servers it uses.
   * @example ['acme/github']
   */
  servers: string[];
  /**
   * URL of the repository; null for an upload.
   * @example 'https://github.com/acme/skills/tree/main/code-review'
   */
  gitUrl: string | null;
}

/** A listed skill; without `fields`, every field is present. */
export class ListedSkillDto extends PartialType(SkillSummaryDto) {}

export class SkillListDto {
  skills: ListedSkillDto[];
  pagination: PaginationDto;
}

export class SkillDto extends SkillSummaryDto {
  /** The instructions: the content of SKILL.md after the front matter. */
  @ApiProperty({ type: String, nullable: false, example: '# Code review\n\nRead the whole change first.' })
  declare prompt: string;
  /**
   * The account that owns the namespace.
   * @example '0b9a3f52-8f5e-4f7e-8f0c-2f3f6b1f9d10'
   */
  owner: string;
}

/** A skill that was just published. */
export class PublishedSkillDto extends PickType(SkillSummaryDto, [
  'id',
  'namespace',
  'slug',
  'displayName',
  'description',
  'gitUrl',
  'externalStars',
  'listed',
  'createdAt',
]) {
  /**
   * Time at which the files were last published.
   * @example '2026-11-20T10:15:00.000Z'
   */
  updatedAt: string;
}

export class DeletedSkillDto {
  /** Always true. */
  success: boolean;
  /** @example 'acme/code-review' */
  qualifiedName: string;
}

/** One skill, as installers request it. */
export class SkillIndexEntryDto {
  /** @example 'code-review' */
  name: string;
  /** @example 'Reviews a change for bugs and style. Use it before a merge.' */
  description: string;
  /**
   * Paths of its files; SKILL.md is one of them.
   * @example ['SKILL.md', 'scripts/diff.sh']
   */
  files: string[];
}

/** An artifact of an index of Agent Skills discovery 0.2.0. */
export class SkillArtifactDto {
  /** @example 'code-review' */
  name: string;
  /** `skill-md` for a skill of one file, `archive` for a zip. */
  @ApiProperty({ enum: ['skill-md', 'archive'] })
  type: 'skill-md' | 'archive';
  /** @example 'Reviews a change for bugs and style. Use it before a merge.' */
  description: string;
  /** @example 'https://slipway.example/skills/acme/code-review/download' */
  url: string;
  /**
   * SHA-256 of the bytes at `url`.
   * @example 'sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'
   */
  digest: string;
}

export class SkillDiscoveryDto {
  /** @example 'https://schemas.agentskills.io/discovery/0.2.0/schema.json' */
  $schema: string;
  skills: SkillArtifactDto[];
}

export class SkillIndexDto {
  skills: SkillIndexEntryDto[];
}
