import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect } from '@jest/globals';
import { verifies } from '../../../test/support/verifies.js';
import { removeUnusedState } from './unused-state.js';

const DAY_MS = 86_400_000;

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'slipway-state-'));
});
afterEach(() => rm(root, { recursive: true, force: true }));

/** Session data that was last written this many days ago. */
async function state(days: number): Promise<string> {
  const ownerId = randomUUID();
  const folder = join(root, ownerId, 'sessions');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'a.sqlite'), 'x');
  const at = new Date(Date.now() - days * DAY_MS);
  for (const path of [join(folder, 'a.sqlite'), folder, join(root, ownerId)]) await utimes(path, at, at);
  return ownerId;
}

describe('session data', () => {
  verifies(
    'hosting:sessions-expire',
    'is deleted when the program had no call for longer than the session lifetime',
    async () => {
      const [unused, recent, running] = [await state(8), await state(6), await state(30)];
      await writeFile(join(root, 'notes.txt'), '');
      await removeUnusedState(root, (ownerId) => ownerId === running, new Date());
      const left = await readdir(root);
      expect(left.sort()).toEqual([recent, running, 'notes.txt'].sort());
      expect(left).not.toContain(unused);
    },
  );

  verifies('hosting:sessions-expire', 'stays if one session had a recent call', async () => {
    const ownerId = await state(30);
    await writeFile(join(root, ownerId, 'sessions', 'b.sqlite'), 'x');
    await removeUnusedState(root, () => false, new Date());
    expect(await readdir(root)).toEqual([ownerId]);
    await removeUnusedState(join(root, 'none'), () => false, new Date());
  });
});
