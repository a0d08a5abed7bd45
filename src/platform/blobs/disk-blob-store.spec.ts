import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, open, readdir, readFile, rm, stat, utimes, type FileHandle } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { TooLargeError } from '../errors/domain-error.js';
import { DiskBlobStore } from './disk-blob-store.js';

let folder: string;
let store: DiskBlobStore;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'slipway-blobs-'));
  store = new DiskBlobStore(folder);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const hashOf = (content: Buffer) => createHash('sha256').update(content).digest('hex');
const incoming = () => readdir(join(folder, 'incoming'));

async function listed(ageMs: number): Promise<string[]> {
  const hashes: string[] = [];
  for await (const hash of store.list(ageMs)) hashes.push(hash);
  return hashes;
}

describe('a blob store on disk', () => {
  it('keeps a stream under the hash of its content, and gives it back', async () => {
    const content = randomBytes(100_000);
    const hash = hashOf(content);
    expect(await store.has(hash)).toBe(false);
    expect(await store.open(hash)).toBeNull();
    expect(await store.put(Readable.from([content.subarray(0, 7), content.subarray(7)]), 100_000)).toEqual({
      hash,
      bytes: content.length,
    });
    expect(await store.has(hash)).toBe(true);
    const found = await store.open(hash);
    expect(content.equals(await buffer(found ?? Readable.from([])))).toBe(true);
    expect(content.equals(await store.withFile(hash, (path) => readFile(path)))).toBe(true);
    expect((await stat(join(folder, hash.slice(0, 2), hash))).mode & 0o077).toBe(0);
    await store.delete(hash);
    await store.delete(hash);
    expect(await store.has(hash)).toBe(false);
  });

  it('keeps nothing of a stream that is one byte too long, and all of one that is not', async () => {
    const content = randomBytes(1_000);
    await expect(store.put(Readable.from([content]), 999)).rejects.toThrow(TooLargeError);
    expect([await store.has(hashOf(content)), await incoming()]).toEqual([false, []]);
    expect((await store.put(Readable.from([content]), 1_000)).bytes).toBe(1_000);
  });

  it('keeps nothing of streams that break, however early, and fails with their error', async () => {
    const breaking = (after: number) =>
      Readable.from(
        (function* () {
          for (let count = 0; count < after; count += 1) yield randomBytes(70_000);
          throw new Error('torn');
        })(),
      );
    const before = await listed(-1_000);
    const puts = Array.from({ length: 60 }, (_, at) => store.put(breaking(at % 4), 10_000_000));
    const outcomes = await Promise.allSettled(puts);
    for (const outcome of outcomes) expect(outcome).toMatchObject({ status: 'rejected', reason: { message: 'torn' } });
    const destroyed = Readable.from([randomBytes(10)]);
    destroyed.on('error', () => undefined).destroy(new Error('gone'));
    await expect(store.put(destroyed, 100)).rejects.toThrow('gone');
    expect([await incoming(), await listed(-1_000)]).toEqual([[], before]);
  });

  it('keeps one file of the same content, also when it comes twice at the same time', async () => {
    const content = randomBytes(50_000);
    const puts = Array.from({ length: 8 }, () => store.put(Readable.from([content]), 50_000));
    expect(new Set((await Promise.all(puts)).map(({ hash }) => hash))).toEqual(new Set([hashOf(content)]));
    expect((await listed(-1_000)).filter((hash) => hash === hashOf(content))).toHaveLength(1);
    expect(await incoming()).toEqual([]);
  });

  it('lists what nobody stored for a while; storing it again makes it young', async () => {
    const content = randomBytes(10);
    const { hash } = await store.put(Readable.from([content]), 10);
    const old = new Date(Date.now() - 60_000);
    await utimes(join(folder, hash.slice(0, 2), hash), old, old);
    expect(await listed(30_000)).toEqual([hash]);
    expect(await listed(90_000)).toEqual([]);
    await store.put(Readable.from([content]), 10);
    expect(await listed(30_000)).toEqual([]);
  });

  it('has content and name on the disk before it says so', async () => {
    const handle = await open(folder);
    const handles = Object.getPrototypeOf(handle) as FileHandle;
    await handle.close();
    const sync = jest.spyOn(handles, 'sync');
    const kinds: string[] = [];
    sync.mockImplementation(async function (this: FileHandle) {
      kinds.push((await this.stat()).isDirectory() ? 'folder' : 'file');
    });
    try {
      await store.put(Readable.from([randomBytes(10)]), 10);
      expect(kinds).toEqual(['file', 'folder', 'folder']);
    } finally {
      sync.mockRestore();
    }
  });

  it('takes no name that could lead elsewhere', async () => {
    for (const name of ['../../etc/passwd', '', 'A'.repeat(64), 'a'.repeat(63), `${'a'.repeat(64)}/..`]) {
      await expect(store.delete(name)).rejects.toThrow('64 hex digits');
      await expect(store.open(name)).rejects.toThrow('64 hex digits');
    }
  });

  it('is empty before anything was stored', async () => {
    const empty = new DiskBlobStore(join(folder, 'not-there'));
    const found: string[] = [];
    for await (const hash of empty.list(0)) found.push(hash);
    expect(found).toEqual([]);
  });
});
