/** One call and what came of it. Times are milliseconds since 1970. */
export interface Call {
  kind: string;
  /** Index of the api process. */
  at: number;
  token: string;
  startedAt: number;
  endedAt: number;
  outcome: 'open' | 'answered' | 'refused' | 'unknown' | 'wrong' | 'lost';
  /** No answer came within a minute. */
  isHung?: boolean;
  text: string;
}

export const kindNames: string[];

export class Calls {
  readonly all: Call[];
  constructor(deployment: { urls: string[]; key: string }, scale: number);
  end(): Promise<void>;
}
