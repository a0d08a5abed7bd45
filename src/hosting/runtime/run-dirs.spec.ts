import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { RunDirs } from './run-dirs.js';

describe('folders of running programs', () => {
  let base: string;
  beforeAll(async () => {
    base = await mkdtemp(join(tmpdir(), 'slipway-dirs-'));
  });
  afterAll(() => rm(base, { recursive: true, force: true }));

  it('are private, short enough for a socket, and removed one by one or together', async () => {
    const dirs = new RunDirs(base);
    const [first, second] = [await dirs.make(), await dirs.make()];
    expect((await stat(first)).mode & 0o777).toBe(0o700);
    expect((await stat(join(first, '..'))).mode & 0o777).toBe(0o711);
    expect(first.slice(base.length).length).toBeLessThan(45);
    await writeFile(join(first, 'secret'), 'x');
    await dirs.remove(first);
    await expect(stat(first)).rejects.toThrow('ENOENT');
    expect((await stat(second)).isDirectory()).toBe(true);
    await dirs.close();
    expect(await readdir(base)).toEqual([]);
  });

  it('are in /tmp when the path of the temporary folder is too long for sockets', async () => {
    const dirs = new RunDirs(join(base, 'd'.repeat(100)));
    expect(await dirs.make()).toMatch(/^\/tmp\/slipway-run-/);
    await dirs.close();
  });

  it('are removed at start when their process has exited, and kept for live processes and other owners', async () => {
    const living = new RunDirs(base);
    const kept = await living.make();
    const own = (await readFile(`/proc/${process.pid}/stat`, 'utf8')).split(') ')[1]?.split(' ')[19];
    const stale = [`slipway-run-${process.pid}-1${own}-abcdef`, 'slipway-run-4194305-17-abcdef'];
    for (const name of stale) await mkdir(join(base, name, '1'), { recursive: true });
    const foreign = await mkdtemp(join(base, 'something-else-'));
    await symlink(foreign, join(base, 'slipway-run-4194305-18-abcdef'));
    await new RunDirs(base).removeStale();
    const left = await readdir(base);
    for (const name of stale) expect(left).not.toContain(name);
    expect(left).toContain('slipway-run-4194305-18-abcdef');
    expect((await stat(kept)).isDirectory()).toBe(true);
    expect((await stat(foreign)).isDirectory()).toBe(true);
    await living.close();
  });
});
