/** The sample notes of a server. */
export class SampleNotesDto {
  /**
   * Accounts that have put one on it.
   * @example 3
   */
  count: number;
  /**
   * True if the caller has.
   * @example true
   */
  mine: boolean;
}
