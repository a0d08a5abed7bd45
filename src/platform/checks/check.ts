/**
 * Checks of the surroundings of the service, as rows. The start and `slipway doctor` run the same rows, and
 * docs/reference/troubleshoot.md is generated from them.
 */

export type Found = Record<string, string | number>;

/** `Facts` describe one part: Postgres, Redis, folders, or an error of one. */
export interface Check<Facts> {
  asks: string;
  /** False for a warning; true by default. */
  isFatal?: boolean;
  /** Returns the values for the messages if there is a problem; null if there is none. */
  find: (facts: Facts) => Found | null;
  /** Message about the problem, without its full stop; `{name}` is a value that `find` returned. */
  fault: string;
  /** Advice with the SQL or the command that helps, without its full stop. */
  remedy: string;
}

export interface Fault {
  /** Problem and advice: a line without secrets. */
  text: string;
  isFatal: boolean;
}

export function faultsOf<Facts>(checks: Check<Facts>[], facts: Facts): Fault[] {
  return checks.flatMap(({ find, fault, remedy, isFatal = true }) => {
    const details = find(facts);
    if (!details) return [];
    const text = `${fault}: ${remedy}.`.replace(/\{(\w+)\}/g, (_, name: string) => String(details[name]));
    return [{ text, isFatal }];
  });
}
