/** Report of a program's tail about one event. */
export interface TailItem {
  /** Invocation id of the request; empty without one. */
  id: string;
  hasThrown: boolean;
  /** True if workerd dropped lines: it stores 256 KB of an event. */
  isTruncated: boolean;
  /** Time in ms since 1970, level, text. */
  lines: [number, string, string][];
  exceptions: { at: number; name: string; message: string; stack?: string }[];
}
