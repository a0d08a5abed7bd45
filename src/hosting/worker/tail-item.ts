/** What the tail of a program tells its supervisor of one event. */
export interface TailItem {
  /** The invocation's id as the request carried it; empty when it carried none. */
  id: string;
  hasThrown: boolean;
  /** workerd left lines out: it keeps 256 KB of an event. */
  isTruncated: boolean;
  /** Time in ms since 1970, level, text. */
  lines: [number, string, string][];
  exceptions: { at: number; name: string; message: string; stack?: string }[];
}
