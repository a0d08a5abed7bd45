import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { patchedRecords, recordField, renamed, zipOf } from '../../../test/support/zips.js';
import { InvalidArchiveError, openZip, type ZipArchive } from './zip-archive.js';
import { randomRuns } from '../../../test/support/random-runs.js';

const limits = { entriesMax: 1_000, totalBytesMax: 50 * 1024 * 1024 };

/** The error of an archive; fails if it opens. */
async function problem(archive: Buffer, given = limits): Promise<string> {
  try {
    (await openZip(archive, given)).close();
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidArchiveError);
    return (error as Error).message;
  }
  throw new Error('The archive was taken.');
}

async function readProblem(zip: ZipArchive, name: string, bytesMax = 1_000): Promise<string> {
  const error: unknown = await zip.read(name, bytesMax).then(
    () => new Error('It was read.'),
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(InvalidArchiveError);
  return (error as Error).message;
}

describe('openZip', () => {
  it('lists and reads files and folders, from memory and from a file', async () => {
    const archive = await zipOf({
      'a/': '',
      'a/b.sh': { content: 'run', mode: 0o100755 },
      'ä €.txt': 'text',
      empty: '',
    });
    const folder = await mkdtemp(path.join(tmpdir(), 'slipway-zip-'));
    await writeFile(path.join(folder, 'a.zip'), archive);
    for (const source of [archive, path.join(folder, 'a.zip')]) {
      const zip = await openZip(source, limits);
      expect([...zip.entries]).toEqual([
        ['a', { size: 0, isDirectory: true, mode: 0o775 }],
        ['a/b.sh', { size: 3, isDirectory: false, mode: 0o755 }],
        ['ä €.txt', { size: 4, isDirectory: false, mode: 0o644 }],
        ['empty', { size: 0, isDirectory: false, mode: 0o644 }],
      ]);
      expect((await zip.read('a/b.sh', 3)).toString()).toBe('run');
      expect((await zip.read('ä €.txt', 100)).toString()).toBe('text');
      expect(await zip.read('empty', 0)).toHaveLength(0);
      zip.close();
    }
    await rm(folder, { recursive: true });
  });

  it('accepts an empty archive, and as many entries as allowed', async () => {
    const empty = await openZip(await zipOf({}), limits);
    expect(empty.entries.size).toBe(0);
    const full = await zipOf(Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`${n}`, ''])));
    const many = await openZip(full, { ...limits, entriesMax: 500 });
    expect(many.entries.size).toBe(500);
    expect(await problem(full, { ...limits, entriesMax: 499 })).toBe(
      'The archive holds 500 entries; at most 499 are taken.',
    );
  });

  it('reads backslashes in names as slashes', async () => {
    const bytes = await zipOf({ 'aaaaXbb.txt': 'text' });
    const packed = Buffer.from(bytes.toString('latin1').replaceAll('aaaaXbb.txt', 'aaaa\\bb.txt'), 'latin1');
    const zip = await openZip(packed, limits);
    expect([...zip.entries.keys()]).toEqual(['aaaa/bb.txt']);
    expect((await zip.read('aaaa/bb.txt', 10)).toString()).toBe('text');
    zip.close();
  });

  it('keeps problems with entries when only a part of the archive is used', async () => {
    const archive = await zipOf({
      'a/SKILL.md': 'text',
      link: { content: 'a', mode: 0o120777 },
      zeros: { content: '\0'.repeat(3 * 1024 * 1024), mode: 0o100644 },
    });
    expect(await problem(archive)).toMatch(/a link|zip bomb/);
    const zip = await openZip(archive, { ...limits, isPartUsed: true });
    expect((await zip.read('a/SKILL.md', 10)).toString()).toBe('text');
    for (const [name, fault] of [
      ['link', 'a link'],
      ['zeros', 'zip bomb'],
    ] as const) {
      expect(await readProblem(zip, name)).toContain(fault);
    }
    zip.close();
  });

  it('reads no folder, no missing file and no file above the limit', async () => {
    const zip = await openZip(await zipOf({ 'a/': '', 'b.txt': 'text' }), limits);
    expect(await readProblem(zip, 'a')).toBe('The archive holds no file "a".');
    expect(await readProblem(zip, 'c.txt')).toBe('The archive holds no file "c.txt".');
    expect(await readProblem(zip, 'toString')).toBe('The archive holds no file "toString".');
    expect(await readProblem(zip, 'b.txt', 3)).toBe('"b.txt" is larger than 3 bytes.');
    zip.close();
  });

  it.each([
    ['climbing', '../../x.txt'],
    ['climbing in the middle', 'aa/../x.txt'],
    ['climbing at the end', 'aaaaaaaa/..'],
    ['absolute', '/aaaaa/x.txt'],
    ['of Windows', 'C:/aaaa/x.txt'],
    ['climbing with backslashes', '..\\..\\xxxx'],
    ['absolute with a backslash', '\\aaaaa\\xxx'],
    ['with a NUL', 'aaaaaa.txt\0'],
    ['with a line break', 'aaa\naaaa.md'],
    ['with a delete character', 'aaa\x7faaaa.md'],
    ['with an empty segment', 'aaaa//bb.md'],
    ['with a dot segment', 'aaaa/./b.md'],
    ['of a stream on Windows', 'aaaaaa:b.md'],
  ])('refuses a path that is %s', async (_what, name) => {
    const archive = await zipOf({ ['n'.repeat(name.length)]: 'x' });
    const text = await problem(renamed(archive, 'n'.repeat(name.length), name));
    // eslint-disable-next-line no-control-regex -- what must not get into a message
    expect(text).not.toMatch(/[\u0000-\u001f]/);
  });

  it('refuses an unsafe character at the end of a long path too', async () => {
    const name = `${'a'.repeat(150)}\n${'b'.repeat(49)}`;
    const archive = renamed(await zipOf({ ['n'.repeat(200)]: 'x' }), 'n'.repeat(200), name);
    expect(await problem(archive)).toContain('unsafe path');
  });

  it('refuses paths that are too long or too deep', async () => {
    expect(await problem(await zipOf({ ['a'.repeat(1_001)]: 'x' }))).toContain('more than 1000 characters');
    expect(await problem(await zipOf({ [`${'a/'.repeat(50)}a`]: 'x' }))).toContain('50 folders');
    (await openZip(await zipOf({ [`${'a/'.repeat(49)}a`]: 'x', ['b'.repeat(1_000)]: '' }), limits)).close();
  });

  it('refuses links', async () => {
    const archive = await zipOf({ 'a.txt': 'x', link: { content: '/etc/passwd', mode: 0o120777 } });
    expect(await problem(archive)).toBe('The archive holds a link, "link": pack the file itself.');
  });

  it('refuses two files of one name, also as file and folder', async () => {
    const twice = renamed(await zipOf({ 'a.txt': '1', 'b.txt': '2' }), 'b.txt', 'a.txt');
    expect(await problem(twice)).toBe('The archive holds "a.txt" twice.');
    expect(await problem(await zipOf({ a: '1', 'a/': '' }))).toBe('The archive holds "a" twice.');
    const clashes: Record<string, string>[] = [
      { a: '1', 'a/b': '2' },
      { 'a/b/c/d': '1', 'a/b': '2' },
    ];
    for (const files of clashes) {
      expect(await problem(await zipOf(files))).toContain('both as a file and as a folder');
    }
  });

  it('refuses encrypted files', async () => {
    const archive = await zipOf({ 'a.txt': 'x' });
    const locked = patchedRecords(archive, (record) => record.writeUInt16LE(1, recordField.flags));
    expect(await problem(locked)).toBe('The archive is encrypted ("a.txt"): pack it without a password.');
    const strong = patchedRecords(archive, (record) => record.writeUInt16LE(0x41, recordField.flags));
    expect(await problem(strong)).toContain('encryption');
  });

  it('refuses archives that inflate too much, each file or in total', async () => {
    const bomb = await zipOf({ 'zeros.bin': Buffer.alloc(10 * 1024 * 1024) });
    expect(await problem(bomb)).toContain('that looks like a zip bomb');
    const small = await zipOf({ 'zeros.bin': Buffer.alloc(1024 * 1024) });
    (await openZip(small, limits)).close();
    expect(await problem(small, { ...limits, totalBytesMax: 1024 * 1024 - 1 })).toBe(
      'The archive unpacks to more than 1048575 bytes.',
    );
    const together = await zipOf({ a: Buffer.alloc(600_000), b: Buffer.alloc(600_000) });
    expect(await problem(together, { ...limits, totalBytesMax: 1_000_000 })).toContain('more than 1000000 bytes');
  });

  it('stops where a declared size is wrong', async () => {
    const archive = await zipOf({ 'zeros.bin': Buffer.alloc(500_000) });
    for (const said of [10, 499_999, 500_001, 900_000]) {
      const lying = patchedRecords(archive, (record) => record.writeUInt32LE(said, recordField.size));
      const zip = await openZip(lying, limits);
      expect(zip.entries.get('zeros.bin')?.size).toBe(said);
      expect(await readProblem(zip, 'zeros.bin', 1_000_000)).toContain('The archive is not a readable zip');
      zip.close();
    }
  });

  it('refuses other files, and a zip that is cut off anywhere', async () => {
    for (const text of ['', 'PK', 'PK\x03\x04', '<html>Sign in</html>', 'x'.repeat(100_000)]) {
      expect(await problem(Buffer.from(text))).toContain('The archive is not a readable zip');
    }
    const archive = await zipOf({ 'a.txt': 'some text', 'b/c.txt': 'more' });
    for (let length = 0; length < archive.length; length += 1) await problem(archive.subarray(0, length));
  });

  it('refuses an empty path', async () => {
    await expect(openZip('/nowhere/a.zip', limits)).rejects.toBeInstanceOf(InvalidArchiveError);
  });

  it('reports a broken or unknown compression as unreadable', async () => {
    const archive = await zipOf({ 'a.txt': 'some text '.repeat(100) });
    const unknown = patchedRecords(archive, (record) => record.writeUInt16LE(99, recordField.method));
    const zip = await openZip(unknown, limits);
    expect(await readProblem(zip, 'a.txt', 10_000)).toContain('The archive is not a readable zip');
    zip.close();
    const broken = Buffer.from(archive);
    broken.fill(0xff, 40, 50);
    const torn = await openZip(broken, limits);
    expect(await readProblem(torn, 'a.txt', 10_000)).toContain('The archive is not a readable zip');
    torn.close();
    const flipped = patchedRecords(archive, (record) => record.writeUInt32LE(1, recordField.checksum));
    const damaged = await openZip(flipped, limits);
    expect(await readProblem(damaged, 'a.txt', 10_000)).toBe('"a.txt" is damaged: its checksum is wrong.');
    damaged.close();
  });
});

describe('openZip with random input', () => {
  /** Opens it and reads everything; whatever goes wrong must be said in one way. */
  async function readAll(archive: Buffer): Promise<void> {
    try {
      const zip = await openZip(archive, limits);
      try {
        for (const [name, { size }] of zip.entries) await zip.read(name, size).catch(expectInvalid);
      } finally {
        zip.close();
      }
    } catch (error) {
      expectInvalid(error);
    }
  }

  function expectInvalid(error: unknown): void {
    if (!(error instanceof InvalidArchiveError)) throw error;
  }

  it('throws nothing but InvalidArchiveError for random bytes', async () => {
    const end = Buffer.from('PK\x05\x06', 'latin1');
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), fc.uint8Array({ minLength: 18, maxLength: 60 }), (a, b) =>
        readAll(Buffer.concat([a, end, b])),
      ),
      { numRuns: randomRuns(500) },
    );
  });

  it('throws nothing but InvalidArchiveError for a zip with changed bytes', async () => {
    const archive = await zipOf({ 'a.txt': 'some text '.repeat(50), 'b/c.bin': Buffer.alloc(300, 1), 'd/': '', e: '' });
    const change = fc.record({ at: fc.nat(archive.length - 1), value: fc.nat(255) });
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 8 }), (changes) => {
        const copy = Buffer.from(archive);
        for (const { at, value } of changes) copy[at] = value;
        return readAll(copy);
      }),
      { numRuns: randomRuns(1_500) },
    );
  });
});
