import { ApiProperty } from '#api-docs';

export class HealthDto {
  /** @example 'ok' */
  status: string;
  /** @example '2026-11-20T10:15:00.000Z' */
  timestamp: string;
}

export class ReadinessDto {
  /**
   * `ok`, `unavailable`, or `stopping` after the process was told to stop.
   * @example 'ok'
   */
  @ApiProperty({ enum: ['ok', 'unavailable', 'stopping'] })
  status: string;
  /**
   * `ok`, `degraded` while calls use what was read before it stopped answering, or `down`.
   * @example 'ok'
   */
  @ApiProperty({ enum: ['ok', 'degraded', 'down'] })
  database: string;
  /**
   * `ok` or `down`.
   * @example 'ok'
   */
  @ApiProperty({ enum: ['ok', 'down'] })
  queue: string;
  /**
   * `ok`, or how far the clock of this process is off: calls between processes fail then.
   * @example 'ok'
   */
  clock: string;
  /**
   * Number of the process that answers, where `WORKERS` are several.
   * @example 1
   */
  worker?: number;
  /**
   * `ok`, or `full` when the data folder cannot take an upload.
   * @example 'ok'
   */
  @ApiProperty({ enum: ['ok', 'full'] })
  storage: string;
}
