import { ApiExtraModels, ApiProperty, getSchemaPath } from '#api-docs';
import { IsBoolean, IsOptional, IsString } from 'class-validator';
import { ClosedBody, IsWhole } from '../../extension.js';

@ClosedBody()
export class SetRecordingDto {
  /** `true` starts recording for 7 days; `false` stops it and keeps the recorded calls. */
  @IsBoolean()
  enabled: boolean;
}

export class RecordedToolDto {
  /** @example 'create_issue' */
  name: string;
  /** Number of recorded calls of the tool. */
  calls: number;
}

/** The state and size of a recording. Only the owner can read arguments and results, by `calls` and `fixture` under this path. */
export class RecordingDto {
  enabled: boolean;
  /**
   * Time at which recording ends. Absent while recording is off.
   * @example '2026-11-27T10:15:00.000Z'
   */
  until?: string;
  /** Number of recorded calls: at most 1,000, each stored for 7 days. */
  calls: number;
  /** Total size of the recorded calls: at most 16 MB. */
  bytes: number;
  /** Recorded tools, sorted by name. */
  tools: RecordedToolDto[];
}

export class RecordedCallsQueryDto {
  /** Calls per page. */
  @IsWhole(1, 100)
  limit?: number = 20;

  /** The `nextCursor` of the previous page. */
  @IsOptional()
  @IsString()
  cursor?: string;
}

/** A recorded call. */
export class RecordedCallDto {
  /**
   * Time of the recording.
   * @example '2026-11-20T10:15:00.123Z'
   */
  at: string;
  /** @example 'create_issue' */
  tool: string;
  arguments: Record<string, unknown>;
  /** The result as the MCP server sent it. */
  result: Record<string, unknown>;
}

/** A page of calls, in the order of recording. */
export class RecordedCallsDto {
  calls: RecordedCallDto[];
  /** The `cursor` of the next page; null on the last one. */
  nextCursor: string | null;
}

/** A rule of a fixture. */
export class RecordedRuleDto {
  arguments: Record<string, unknown>;
  /** The result, with the fields that a fixture accepts: `content`, `structuredContent`, `isError` and `_meta`. */
  result: Record<string, unknown>;
  /** How often the result is returned. Absent for the last result of these arguments, which repeats. */
  times?: number;
}

/** A recording as a fixture, for `mock.scenario`. */
@ApiExtraModels(RecordedRuleDto)
export class RecordedFixtureDto {
  /** The rules of each tool. */
  @ApiProperty({
    type: 'object',
    additionalProperties: { type: 'array', items: { $ref: getSchemaPath(RecordedRuleDto) } },
  })
  tools: Record<string, RecordedRuleDto[]>;
}
