/** The sample notes of a server. */
export class SampleNotesDto {
  /**
   * Number of accounts that have put a sample note on the server.
   * @example 3
   */
  count: number;
  /**
   * True if the caller has put a sample note on the server.
   * @example true
   */
  mine: boolean;
}
