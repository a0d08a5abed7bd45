import { IsBoolean } from 'class-validator';
import { ClosedBody } from '../../../platform/http/input.pipe.js';

@ClosedBody()
export class SetRecordingDto {
  /** `true` starts recording, for 7 days from now; `false` stops it and keeps what there is. */
  @IsBoolean()
  enabled: boolean;
}

export class RecordedToolDto {
  /** @example 'create_issue' */
  name: string;
  /** How many calls of it were recorded. */
  calls: number;
}

/** What is recorded of a connection. Arguments and results are never shown: a mock replays them. */
export class RecordingDto {
  enabled: boolean;
  /**
   * When recording ends by itself. Absent while nothing is recorded.
   * @example '2026-11-27T10:15:00.000Z'
   */
  until?: string;
  /** Calls kept: at most 1,000, each for 7 days. */
  calls: number;
  /** What they hold: at most 16 MB together. */
  bytes: number;
  /** By name. */
  tools: RecordedToolDto[];
}
