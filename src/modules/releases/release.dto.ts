import { ApiProperty } from '#api-docs';
import { IsObject, IsOptional } from 'class-validator';
import { PaginationDto } from '../../platform/http/pagination.dto.js';
import { releaseTypes } from '../servers/server.types.js';
import { logLevels, type LogLevel, type ReleaseLog, type Release } from './release.entity.js';
import { releaseStatuses, stages, type ReleaseStatus, type Stage } from './release-state.js';

/** The account that published a release. */
export class ReleaseAccountDto {
  /** @example '4f1f2f54-8f8c-4a8e-9d0e-3c1f1b0a2d11' */
  id: string;
  /** @example 'bob' */
  name: string;
}

/** One published version of a server. Spec 2.2. */
export class ReleaseDto {
  /** @example '5b1d7a52-0c3e-4b57-8a39-1f3a4e2b8d11' */
  id: string;
  /**
   * Counts the releases of its server from 1.
   * @example 3
   */
  @ApiProperty({ type: 'integer' })
  number: number;
  /** Status of the release. */
  @ApiProperty({ enum: releaseStatuses, example: 'SUCCESS' })
  status: ReleaseStatus;
  /**
   * `external_shttp`, `hosted_shttp` or `stdio`.
   * @example 'external_shttp'
   */
  @ApiProperty({ enum: releaseTypes })
  type: string;
  /** @example '2026-11-20T10:15:00.000Z' */
  createdAt: string;
  /**
   * Time of the last change of status.
   * @example '2026-11-20T10:15:04.000Z'
   */
  updatedAt: string;
  /** The creator; null for a release that an earlier version of this service stored. */
  @ApiProperty({ type: () => ReleaseAccountDto, nullable: true })
  createdBy: ReleaseAccountDto | null;
  /** @example '8f2d1c0' */
  commit: string | null;
  /** @example 'Forecasts for tomorrow' */
  commitMessage: string | null;
  /** @example 'main' */
  branch: string | null;
  /**
   * Releases of type `external_shttp` only; with `***` instead of the values of its query.
   * @example 'http://127.0.0.1:3001/mcp'
   */
  upstreamUrl: string | null;
  /**
   * The MCP address of the server, which leads to its current release. Absent for a bundle that is not run here.
   * @example 'http://127.0.0.1:3000/run/acme--weather'
   */
  mcpUrl?: string;
  /** True for the release that calls to the server reach. */
  isCurrent: boolean;
  /**
   * The last error in the log of a release that failed; absent in others.
   * @example 'The server did not list its tools within 30 s.'
   */
  lastError?: string;
  /**
   * The page on which a user authorizes a release that is AUTH_REQUIRED; the release then continues by itself. Only the
   * owner of the server receives it, with a key that can manage the server.
   * @example 'http://127.0.0.1:3000/setup/authorizations/…'
   */
  setupUrl?: string;
}

export class ReleaseErrorDto {
  message: string;
}

/** One line of the log of a release. */
export class ReleaseLogDto {
  @ApiProperty({ enum: stages, example: 'scan' })
  stage: Stage;
  /** `error` is the reason why a release failed, or a finding in a published one. */
  @ApiProperty({ enum: logLevels, example: 'success' })
  level: LogLevel;
  /** @example 'Found 13 tools, 7 resources, 2 resource templates, 4 prompts; the security check passed' */
  message: string;
  /** @example '2026-11-20T10:15:00.000Z' */
  timestamp: string;
  /** The cause, if the message does not contain it. */
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

/** A resumed release. Spec 4.7. */
export class ResumedReleaseDto {
  /** @example 'WORKING' */
  status: string;
  /**
   * The release's id.
   * @example '5b1d7a52-0c3e-4b57-8a39-1f3a4e2b8d11'
   */
  deploymentId: string;
}

/** Options of a rescan. */
export class RescanDto {
  /**
   * Values this scan needs, sent as those of a publish. Deleted after it. Required if the release was published with
   * some.
   * @example { "apiKey": "for the scan only" }
   */
  @IsOptional()
  @IsObject()
  scanCredentials?: Record<string, string>;
}

/** A scheduled scan, whose findings are written to the release's log. */
export class RequestedRescanDto {
  /**
   * The release's, which a scan does not change.
   * @example 'SUCCESS'
   */
  @ApiProperty({ enum: releaseStatuses })
  status: string;
  /**
   * The release's id.
   * @example '5b1d7a52-0c3e-4b57-8a39-1f3a4e2b8d11'
   */
  deploymentId: string;
}

export function toReleaseDto(
  release: Release,
  computed: Pick<ReleaseDto, 'createdBy' | 'mcpUrl' | 'isCurrent' | 'lastError' | 'setupUrl'>,
): ReleaseDto {
  return {
    id: release.id,
    number: release.number,
    status: release.status,
    type: release.type,
    createdAt: release.createdAt.toISOString(),
    updatedAt: release.updatedAt.toISOString(),
    commit: release.commit,
    commitMessage: release.commitMessage,
    branch: release.branch,
    upstreamUrl: release.upstreamUrl,
    ...computed,
  };
}

export function toReleaseLogDto({ stage, level, message, createdAt, error }: ReleaseLog): ReleaseLogDto {
  return {
    stage,
    level,
    message,
    timestamp: createdAt.toISOString(),
    ...(error === null ? {} : { error: { message: error } }),
  };
}
