import { readdirSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

/**
 * Origin of a rule: `Spec 4.2` is a section of the interface specification, `Field` the behaviour of published clients and
 * `House` our own promise. `Spec 4.2, Field` means that the section leaves the point open and the second one settles it.
 */
export type RequirementSource = `Spec ${string}` | 'Field' | 'House';

/** The part of the service that brings a requirement which nothing can prove yet. */
export type PendingTopic = 'hosting';

/** One rule of the service, small enough that one test can prove it. */
export interface Requirement {
  readonly source: RequirementSource;
  /** One sentence in the present tense that a test can prove. */
  readonly behavior: string;
  /** Set while the feature is missing. `requirements.spec.ts` fails when it is still set and a test exists. */
  readonly pending?: PendingTopic;
  /** Only `npm run test:long` proves it: it is about processes that end, published programs or generated code. */
  readonly isLong?: true;
}

/** The requirements of one file, by id. */
export type RequirementChapter = Record<string, Requirement>;

/**
 * The exports of every file in `test/requirements/`: the rules of the interface specification and the promises beyond it.
 * Tests cite the ids with `verifies`, and `requirements.spec.ts` fails on each id that has no test and is not pending,
 * and on each citation of an id that does not exist.
 */
export async function loadRequirements(): Promise<RequirementChapter[]> {
  const folder = path.join(import.meta.dirname, 'requirements');
  const files = readdirSync(folder).filter((name) => name.endsWith('.ts'));
  const chapters: RequirementChapter[] = [];
  for (const name of files) {
    const file = (await import(pathToFileURL(path.join(folder, name)).href)) as Record<string, RequirementChapter>;
    chapters.push(...Object.values(file));
  }
  return chapters;
}
