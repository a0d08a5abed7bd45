import { ApiProperty } from '@nestjs/swagger';
import { PaginationDto } from '../../platform/http/pagination.dto.js';
import { logLevels, type LogLevel } from './release-log.entity.js';
import { releaseStatuses, stages, type ReleaseStatus, type Stage } from './release-state.js';

/** One published version of a server. Spec 2.2. */
export class ReleaseDto {
  id: string;
  /** What became of it so far. */
  @ApiProperty({ enum: releaseStatuses })
  status: ReleaseStatus;
  /** `external_shttp`, `hosted_shttp` or `stdio`. */
  type: string;
  /** @example '2026-11-20T10:15:00.000Z' */
  createdAt: string;
  /** The last change of status. */
  updatedAt: string;
  commit: string | null;
  commitMessage: string | null;
  branch: string | null;
  /** Releases of type `external_shttp` only. */
  upstreamUrl: string | null;
  /** The MCP address of the server, which leads to its current release. */
  mcpUrl: string;
}

export class ReleaseErrorDto {
  message: string;
}

/** One line of what the pipeline did. */
export class ReleaseLogDto {
  @ApiProperty({ enum: stages })
  stage: Stage;
  /** `error` is the line that says why a release failed. */
  @ApiProperty({ enum: logLevels })
  level: LogLevel;
  message: string;
  /** @example '2026-11-20T10:15:00.000Z' */
  timestamp: string;
  /** Why, where the message says what. */
  error?: ReleaseErrorDto;
}

/** A release with the log of its pipeline. */
export class ReleaseDetailDto extends ReleaseDto {
  logs: ReleaseLogDto[];
}

export class ReleaseListDto {
  releases: ReleaseDto[];
  pagination: PaginationDto;
}

/** The pipeline goes on. Spec 4.7. */
export class ResumedReleaseDto {
  /** @example 'WORKING' */
  status: string;
  /** The release's id. */
  deploymentId: string;
}
