import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { keysFromFile } from './vault.js';

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'slipway-keys-'));
});
afterAll(() => rm(folder, { recursive: true }));

describe('keysFromFile', () => {
  it('creates a key that only its owner may read, and reads it later', async () => {
    const dataDir = join(folder, 'new', 'below');
    const [made, ...more] = await keysFromFile(dataDir, true);
    expect(more).toEqual([]);
    expect(made?.id).toBe('k1');
    expect(made?.secret).toHaveLength(32);
    expect((await stat(join(dataDir, 'encryption-keys'))).mode & 0o777).toBe(0o600);
    expect(await keysFromFile(dataDir, true)).toEqual([made]);
    expect(await readdir(dataDir)).toEqual(['encryption-keys']);
  });

  it('concurrent starts get the same key', async () => {
    const dataDir = join(folder, 'raced');
    const found = await Promise.all(Array.from({ length: 20 }, () => keysFromFile(dataDir, true)));
    expect(new Set(found.map(([key]) => key?.secret.toString('hex'))).size).toBe(1);
    expect(await readdir(dataDir)).toEqual(['encryption-keys']);
  });

  it('creates no new key for a database whose key is missing', async () => {
    const dataDir = join(folder, 'lost');
    await expect(keysFromFile(dataDir, false)).rejects.toThrow('encryption-keys is missing: restore it');
    expect(await readdir(dataDir)).toEqual([]);
  });

  it.each(['', '\n', 'k1:short', 'nonsense'])('refuses a damaged file and does not change it', async (content) => {
    await writeFile(join(folder, 'encryption-keys'), content);
    await expect(keysFromFile(folder, true)).rejects.toThrow('encryption-keys does not hold encryption keys');
    expect(await readFile(join(folder, 'encryption-keys'), 'utf8')).toBe(content);
  });
});
