import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InvalidModuleError } from '../../../hosting/hosting.errors.js';
import { ModuleChecks } from './deploy-stage.js';
import { longIt } from '../../../../test/support/jest/globals.mjs';

const MEGABYTE = 1024 * 1024;
const LIMITS = { memoryMbMax: 512, timeoutMs: 60_000 };

let folder: string;
const checks = new ModuleChecks();
const held = new AbortController().signal;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'slipway-modules-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function fileOf(source: string): Promise<string> {
  const path = join(folder, `${Math.random()}.mjs`);
  await writeFile(path, source);
  return path;
}

/** One statement of a million names: the parser keeps a set of them, which doubles in one piece. */
const manyNames = () =>
  `export default () => {}; let ${Array.from({ length: MEGABYTE }, (_, at) => `_${at.toString(36)}`).join(',')};`;

/** Code that takes long to read, but not much memory. */
const muchCode = (bytes = 10 * MEGABYTE) => {
  const piece = 'all.push(function f(a, b) { if (a > 1) return b.map((x) => x * 2); return "text"; });\n';
  return `export default () => {}; const all = [];\n${piece.repeat(bytes / piece.length)}`;
};

describe('a module that is checked in a process of its own', () => {
  longIt('may be as large as a module may be', async () => {
    expect(await checks.check(await fileOf(muchCode()), held, LIMITS)).toMatchObject({ form: 'factory' });
  });

  it('is refused if it takes too much memory, and does not harm the process', async () => {
    const path = await fileOf(manyNames());
    const check = checks.check(path, held, { ...LIMITS, memoryMbMax: 48 });
    await expect(check).rejects.toThrow(InvalidModuleError);
    await expect(check).rejects.toThrow(/^The module takes more than 48 MB of memory to be read: make it smaller/);
    expect(await checks.check(await fileOf('export default () => {}'), held)).toMatchObject({ form: 'factory' });
  });

  it('is refused when it takes too long', async () => {
    const from = performance.now();
    const check = checks.check(await fileOf(muchCode(40 * MEGABYTE)), held, { ...LIMITS, timeoutMs: 300 });
    await expect(check).rejects.toThrow(InvalidModuleError);
    await expect(check).rejects.toThrow(/^The module takes more than 0.3 s to be read: make it smaller/);
    expect(performance.now() - from).toBeLessThan(20_000);
  });

  it('waits for the check before it, and is skipped when its caller has left', async () => {
    const over: string[] = [];
    const [large, small] = [await fileOf(muchCode()), await fileOf('export default () => {}')];
    const leaving = new AbortController();
    const abandoned = checks.check(large, leaving.signal, LIMITS).finally(() => over.push('abandoned'));
    const never = checks.check(large, leaving.signal, LIMITS).finally(() => over.push('never'));
    const last = checks.check(small, held).finally(() => over.push('last'));
    setTimeout(() => leaving.abort(new Error('let go')), 300);
    const outcomes = await Promise.allSettled([abandoned, never, last]);
    expect(outcomes).toMatchObject([
      { status: 'rejected', reason: { message: 'let go' } },
      { status: 'rejected', reason: { message: 'let go' } },
      { status: 'fulfilled' },
    ]);
    expect(over).toEqual(['abandoned', 'never', 'last']);
  });
});
