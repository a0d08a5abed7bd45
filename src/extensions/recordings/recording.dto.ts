import { ApiExtraModels, ApiProperty, getSchemaPath } from '@nestjs/swagger';
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
  /** Recorded calls of the tool. */
  calls: number;
}

/** The state and size of a recording. Arguments and results are shown to the owner only, by `calls` and `fixture` below it. */
export class RecordingDto {
  enabled: boolean;
  /**
   * End of recording. Absent while recording is off.
   * @example '2026-11-27T10:15:00.000Z'
   */
  until?: string;
  /** Recorded calls: at most 1,000, each for 7 days. */
  calls: number;
  /** Their size: at most 16 MB together. */
  bytes: number;
  /** By name. */
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
   * When it was recorded.
   * @example '2026-11-20T10:15:00.123Z'
   */
  at: string;
  /** @example 'create_issue' */
  tool: string;
  arguments: Record<string, unknown>;
  /** As the MCP server sent it. */
  result: Record<string, unknown>;
}

/** A page, in the order of recording. */
export class RecordedCallsDto {
  calls: RecordedCallDto[];
  /** The `cursor` of the next page; null on the last one. */
  nextCursor: string | null;
}

/** A rule of a fixture. */
export class RecordedRuleDto {
  arguments: Record<string, unknown>;
  /** With the members that a fixture takes: `content`, `structuredContent`, `isError` and `_meta`. */
  result: Record<string, unknown>;
  /** Absent for the last result of these arguments, which repeats. */
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
