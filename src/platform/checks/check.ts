/**
 * Checks of the surroundings of the service, as rows. The start and `slipway doctor` run the same rows, and
 * docs/reference/troubleshoot.md is made of them. A new check is a new row.
 */

/** Values for the texts of a check, by name. */
export type Found = Record<string, string | number>;

/** One row. `Facts` are those of one part: Postgres, Redis, folders, or an error of one. */
export interface Check<Facts> {
  /** Subject of the check, for the documentation. */
  asks: string;
  /** False: a warning; default true. */
  isFatal?: boolean;
  /** Values for the texts where something is wrong; null where nothing is. */
  find: (facts: Facts) => Found | null;
  /** Sentence about the fault, without its full stop; `{name}` is a value that `find` returned. */
  fault: string;
  /** Advice with the SQL or the command that helps, without its full stop. */
  remedy: string;
}

/** A check that found something. */
export interface Fault {
  /** Fault and advice: a line without secrets. */
  text: string;
  isFatal: boolean;
}

/** Faults that the rows find in these facts. */
export function faultsOf<Facts>(checks: Check<Facts>[], facts: Facts): Fault[] {
  return checks.flatMap(({ find, fault, remedy, isFatal = true }) => {
    const details = find(facts);
    if (!details) return [];
    const text = `${fault}: ${remedy}.`.replace(/\{(\w+)\}/g, (_, name: string) => String(details[name]));
    return [{ text, isFatal }];
  });
}
