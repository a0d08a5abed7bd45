import { readdirSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

/**
 * A rule of the contract, small enough that one test can prove it. The files of `test/requirements/` hold one line for each:
 * `id | source | sentence`. The source is a section of the interface specification (`Spec 4.2`), or `Field`, the behaviour
 * of published clients. `Spec 4.2, Field` means that the section leaves the point open and the second one settles it;
 * `House` there is our own decision.
 * `, long` behind it: only `npm run test:long` proves the rule, since it is about processes that end or published programs.
 *
 * A promise of our own is no row: its test names it, as `verifies('id', 'title', …)` with an id that no row has.
 */
export interface Requirement {
  readonly id: string;
  /** One sentence in the present tense that a test can prove. */
  readonly behavior: string;
  readonly isLong: boolean;
}

/** A row as an object. @throws Error for a line of another form */
export function requirementOf(row: string): Requirement {
  const [, id, long, behavior] = /^(\S+) \| (?:Spec|Field)[^|]*?(, long)? \| (.+\.)$/.exec(row) ?? [];
  if (id === undefined) throw new Error(`A requirement is \`id | source | sentence.\`, not: ${row}`);
  return { id, behavior, isLong: long !== undefined };
}

/**
 * The rows of every file in `test/requirements/`. Tests cite the ids with `verifies`, and `requirements.spec.ts` fails on
 * each id that has no test.
 */
export async function loadRequirements(): Promise<Requirement[]> {
  const folder = path.join(import.meta.dirname, 'requirements');
  const files = readdirSync(folder).filter((name) => name.endsWith('.ts'));
  const modules = await Promise.all(files.map((name) => import(pathToFileURL(path.join(folder, name)).href)));
  return modules.flatMap((file: Record<string, string[]>) => Object.values(file).flat()).map(requirementOf);
}
