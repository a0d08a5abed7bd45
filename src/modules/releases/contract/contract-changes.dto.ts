import { ApiProperty } from '@nestjs/swagger';
import { PaginationDto } from '../../../platform/http/pagination.dto.js';
import {
  changeLevels,
  contractFinders,
  contractSummaries,
  type ChangeLevel,
  type ContractFinder,
  type ContractSummary,
} from './contract-change.js';
import { contractChangeKinds } from './contract-diff.js';

/** One difference between what two releases offer. */
export class ContractChangeDto {
  @ApiProperty({ enum: contractChangeKinds, example: 'required_added' })
  kind: string;
  /**
   * `breaking`: callers that work today may fail, or the security check does not pass any more. `risky`: somebody should look at it, such as at a description, which
   * models read. `compatible`: neither.
   */
  @ApiProperty({ enum: changeLevels, example: 'breaking' })
  level: ChangeLevel;
  /**
   * Null when it is a resource or a prompt.
   * @example 'forecast'
   */
  tool: string | null;
  /**
   * Where in the tool, or which resource or prompt, or what the security check found fault with. Null for a tool as a whole.
   * @example 'inputSchema.city'
   */
  path: string | null;
  /** @example 'The required input was added.' */
  message: string;
}

/** What became of a server's tools, resources and prompts: when a release became current, or was scanned again. */
export class ContractVersionDto {
  /** @example '5b1d7a52-0c3e-4b57-8a39-1f3a4e2b8d11' */
  releaseId: string;
  /**
   * The release that was current before; the same one for a rescan, null for the first one.
   * @example '0d4c8f6e-64b1-4c36-9d0e-9a3c1b7f2e55'
   */
  previousReleaseId: string | null;
  /**
   * `release`: another release became current. `rescan`: the server changed by itself, which a scan of its current release
   * found out.
   */
  @ApiProperty({ enum: contractFinders, example: 'release' })
  foundBy: ContractFinder;
  /**
   * When it became current, or was found out.
   * @example '2026-11-20T10:15:04.000Z'
   */
  at: string;
  /**
   * Equal where the same is offered. SHA-256 in hex.
   * @example 'c0535e4be2b79ffd93291305436bf889314e4a3faec05ecffcbb7df31ad9e51a'
   */
  hash: string;
  /** The level of the worst change. */
  @ApiProperty({ enum: contractSummaries, example: 'breaking' })
  summary: ContractSummary;
  /** All changes; `changes` holds the first 200, the worst first. */
  @ApiProperty({ type: 'integer', example: 1 })
  changeCount: number;
  changes: ContractChangeDto[];
}

export class ContractVersionListDto {
  versions: ContractVersionDto[];
  pagination: PaginationDto;
}
