/** Test files are removed immediately. For a missing folder, its parent is tested. */
import { mkdtemp, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Env } from '../../config/env.js';
import { faultsOf, type Check, type Fault } from './check.js';

/** Codes of the operating system; null: the folder is writable. */
interface FolderFacts {
  dataDir: string;
  dataCode: string | null;
  tmp: string;
  /** Error code of the temporary directory; null if it is writable, and without the role `host`. */
  tmpCode: string | null;
}

export const folderChecks: Check<FolderFacts>[] = [
  {
    asks: 'writes to DATA_DIR',
    find: ({ dataDir, dataCode }) => (dataCode === null ? null : { dataDir, dataCode }),
    fault: 'The files of the service cannot be kept in {dataDir} ({dataCode})',
    remedy: 'give the folder to the user of the service by `chown`, or choose another one in DATA_DIR',
  },
  {
    asks: 'writes to TMPDIR, for hosted code',
    find: ({ tmp, tmpCode }) => (tmpCode === null ? null : { tmp, tmpCode }),
    fault: 'Temporary files of hosted code cannot be written to {tmp} ({tmpCode})',
    remedy: 'create it with `mkdir -m 1777`, name another folder in TMPDIR, or take the role `host` out of ROLES',
  },
];

/** Tests the directories. @returns DATA_DIR, and the problems */
export async function examineFolders({ dataDir, roles }: Env): Promise<{ found: string; faults: Fault[] }> {
  const tmp = tmpdir();
  const [dataCode, tmpCode] = await Promise.all([codeOfData(dataDir), roles.includes('host') ? codeOf(tmp) : null]);
  return { found: dataDir, faults: faultsOf(folderChecks, { dataDir, dataCode, tmp, tmpCode }) };
}

async function codeOfData(folder: string): Promise<string | null> {
  const code = await codeOf(folder);
  const above = path.dirname(folder);
  return code === 'ENOENT' && above !== folder ? codeOfData(above) : code;
}

/** Returns the error code of writing to a folder; null when it is writable. */
async function codeOf(folder: string): Promise<string | null> {
  return mkdtemp(path.join(folder, '.slipway-check-'))
    .then(rmdir)
    .then(() => null)
    .catch(({ code }: NodeJS.ErrnoException) => code ?? 'unknown');
}
