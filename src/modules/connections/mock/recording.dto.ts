import { IsBoolean } from 'class-validator';
import { ClosedBody } from '../../../platform/http/input.pipe.js';

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

/** A recording of a connection. Arguments and results are never shown: a mock replays them. */
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
