import { fileURLToPath } from 'node:url';
import { ensureBuilt } from '../../scripts/lib.mjs';

// Only the tests that run what `npm run build` makes import this file; the others load `src` itself.
ensureBuilt();

/** The path of a file below `dist`, which was built from the sources at hand. */
export function builtFile(path: string): string {
  return fileURLToPath(new URL(`../../dist/${path}`, import.meta.url));
}
