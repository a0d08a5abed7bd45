export class HealthDto {
  /** @example 'ok' */
  status: string;
  /** @example '2026-11-20T10:15:00.000Z' */
  timestamp: string;
}

export class ReadinessDto {
  /**
   * `ok` or `unavailable`.
   * @example 'ok'
   */
  status: string;
  /**
   * `ok` or `down`.
   * @example 'ok'
   */
  database: string;
  /**
   * `ok` or `down`.
   * @example 'ok'
   */
  queue: string;
}
