import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { makeFolder, PASSABLE } from './files.js';

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'slipway-files-'));
});
afterAll(() => rm(root, { recursive: true }));

const modeOf = async (folder: string) => (await stat(join(root, folder))).mode & 0o777;

describe('makeFolder', () => {
  it('makes folders for this account alone, or such as others may pass and not list', async () => {
    await makeFolder(join(root, 'a/b'));
    expect([await modeOf('a'), await modeOf('a/b')]).toEqual([0o700, 0o700]);
    await makeFolder(join(root, 'c/d'), PASSABLE);
    expect([await modeOf('c'), await modeOf('c/d')]).toEqual([0o711, 0o711]);
  });

  it('leaves the mode of a folder that is there', async () => {
    await makeFolder(join(root, 'e'), PASSABLE);
    await makeFolder(join(root, 'e'));
    expect(await modeOf('e')).toBe(0o711);
  });
});
