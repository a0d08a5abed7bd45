import { ApiProperty } from '@nestjs/swagger';
import { Type } from 'class-transformer';
import { IsInt, IsOptional, IsString, IsUUID, Matches, MaxLength } from 'class-validator';
import { PageQueryDto } from '../../platform/http/pagination.dto.js';
import { IsCommaList, IsFlag, IsWhole } from '../../platform/http/input-values.js';

const PRINTABLE = /^\P{Cc}*$/u;

export class SkillQueryDto extends PageQueryDto {
  /** Words to look for in slug, name and description; small typos are forgiven. The best matches come first. */
  @IsOptional()
  @IsString()
  @MaxLength(200)
  @Matches(PRINTABLE, { message: 'q must not hold control characters' })
  q?: string;

  /** Only skills of this category. */
  @IsOptional()
  @IsString()
  @MaxLength(100)
  @Matches(PRINTABLE, { message: 'category must not hold control characters' })
  category?: string;

  /** Only skills of this namespace. */
  @IsOptional()
  @IsString()
  @MaxLength(39)
  @Matches(PRINTABLE, { message: 'namespace must not hold control characters' })
  namespace?: string;

  /** Only skills with this slug. Deprecated: read `/skills/{namespace}/{slug}`. */
  @ApiProperty({ deprecated: true })
  @IsOptional()
  @IsString()
  @MaxLength(64)
  @Matches(PRINTABLE, { message: 'slug must not hold control characters' })
  slug?: string;

  /** Only skills of this account. */
  @IsOptional()
  @IsUUID()
  ownerId?: string;

  /** Only skills of verified namespaces, or only others: `1`, `0`, `true` or `false`. There are no verified ones. */
  @IsOptional()
  @IsFlag()
  verified?: boolean;

  /** With `q`: how many of the best matches are shown, on all pages together. */
  @IsWhole(10, 500)
  topK?: number = 500;

  /** Members to answer of each skill, with commas between them. Default: all. */
  @IsOptional()
  @IsCommaList(50)
  fields?: string[];

  /** Taken for clients that send one. The order is the same for every seed and on every page. */
  @ApiProperty({ type: 'integer' })
  @IsOptional()
  @Type(() => Number)
  @IsInt()
  seed?: number;
}
