import { ApiProperty } from '#api-docs';
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

/** One difference between the contracts of two releases. */
export class ContractChangeDto {
  @ApiProperty({ enum: contractChangeKinds, example: 'required_added' })
  kind: string;
  /**
   * `breaking`: callers that work today may fail, or the security check fails now. `risky`: review it, such as a changed
   * description, which models follow. `compatible`: neither.
   */
  @ApiProperty({ enum: changeLevels, example: 'breaking' })
  level: ChangeLevel;
  /**
   * Null for a resource or a prompt.
   * @example 'forecast'
   */
  tool: string | null;
  /**
   * The location in the tool, the resource or prompt, or the finding of the security check. Null for a complete tool.
   * @example 'inputSchema.city'
   */
  path: string | null;
  /** @example 'The required input was added.' */
  message: string;
}

/** The changes of a server's tools, resources and prompts by a release that became current, or found by a rescan. */
export class ContractVersionDto {
  /** @example '5b1d7a52-0c3e-4b57-8a39-1f3a4e2b8d11' */
  releaseId: string;
  /**
   * The release that was current before: the same one for a rescan, null for the first release.
   * @example '0d4c8f6e-64b1-4c36-9d0e-9a3c1b7f2e55'
   */
  previousReleaseId: string | null;
  /**
   * `release`: another release became current. `rescan`: a scan of the current release found that the server changed without
   * a new release.
   */
  @ApiProperty({ enum: contractFinders, example: 'release' })
  foundBy: ContractFinder;
  /**
   * Time at which the release became current, or the rescan found the changes.
   * @example '2026-11-20T10:15:04.000Z'
   */
  at: string;
  /**
   * SHA-256 in hex; equal for equal contracts.
   * @example 'c0535e4be2b79ffd93291305436bf889314e4a3faec05ecffcbb7df31ad9e51a'
   */
  hash: string;
  /** The highest level among the changes. */
  @ApiProperty({ enum: contractSummaries, example: 'breaking' })
  summary: ContractSummary;
  /** Number of all changes; `changes` holds the first 200, breaking ones first. */
  @ApiProperty({ type: 'integer', example: 1 })
  changeCount: number;
  changes: ContractChangeDto[];
}

export class ContractVersionListDto {
  versions: ContractVersionDto[];
  pagination: PaginationDto;
}
