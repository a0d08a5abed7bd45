import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, open, readdir, readFile, rm, stat, utimes, type FileHandle } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { startForwardProxy } from '../../../test/support/forward-proxy.js';
import { setS3Credentials, startS3 } from '../../../test/support/s3.js';
import { verifies } from '../../../test/support/verifies.js';
import { loadEnv } from '../../config/env.js';
import { s3Place } from '../../config/setting.js';
import { egressTo } from '../egress/egress.module.js';
import { TooLargeError } from '../errors/domain-error.js';
import type { BlobStore } from './blob-store.js';
import { DiskBlobStore } from './disk-blob-store.js';
import { UnavailableError } from '../errors/domain-error.js';
import { S3BlobStore } from './s3-blob-store.js';

let root: string;
let s3: Awaited<ReturnType<typeof startS3>>;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'slipway-blobs-'));
  s3 = await startS3();
});
afterAll(async () => {
  await s3.close();
  await rm(root, { recursive: true, force: true });
});

const hashOf = (content: Buffer) => createHash('sha256').update(content).digest('hex');

/** The blobs of a store whose last `put` is so long ago. */
async function listed(store: BlobStore, ageMs: number): Promise<string[]> {
  const hashes: string[] = [];
  for await (const hash of store.list(new Date(Date.now() - ageMs))) hashes.push(hash);
  return hashes;
}

/** The place in S3 of this name. */
const placeOf = (name: string) => ({ ...s3Place(s3.blobUrl), prefix: `${name}/` });

describe.each([
  {
    kind: 'disk',
    make: (name: string): BlobStore => new DiskBlobStore(join(root, name)),
    incoming: (name: string) => readdir(join(root, name, 'incoming')),
  },
  {
    kind: 's3',
    make: (name: string): BlobStore => new S3BlobStore(placeOf(name), join(root, `s3-${name}`)),
    incoming: (name: string) => readdir(join(root, `s3-${name}`)),
  },
])('a blob store on $kind', ({ make, ...kind }) => {
  let store: BlobStore;
  beforeAll(() => void (store = make('one')));
  const incoming = () => kind.incoming('one');

  it('stores a stream under the hash of its content and returns it', async () => {
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
    await store.delete(hash);
    await store.delete(hash);
    expect(await store.has(hash)).toBe(false);
  });

  it('stores no stream that is one byte too long, and one of exactly the limit whole', async () => {
    const content = randomBytes(1_000);
    await expect(store.put(Readable.from([content]), 999)).rejects.toThrow(TooLargeError);
    expect([await store.has(hashOf(content)), await incoming()]).toEqual([false, []]);
    expect((await store.put(Readable.from([content]), 1_000)).bytes).toBe(1_000);
  });

  it('stores nothing of streams that fail, and fails with their error', async () => {
    const breaking = (after: number) =>
      Readable.from(
        (function* () {
          for (let count = 0; count < after; count += 1) yield randomBytes(70_000);
          throw new Error('torn');
        })(),
      );
    const before = await listed(store, -60_000);
    const puts = Array.from({ length: 60 }, (_, at) => store.put(breaking(at % 4), 10_000_000));
    const outcomes = await Promise.allSettled(puts);
    for (const outcome of outcomes) expect(outcome).toMatchObject({ status: 'rejected', reason: { message: 'torn' } });
    const destroyed = Readable.from([randomBytes(10)]);
    destroyed.on('error', () => undefined).destroy(new Error('gone'));
    await expect(store.put(destroyed, 100)).rejects.toThrow('gone');
    expect([await incoming(), await listed(store, -60_000)]).toEqual([[], before]);
  });

  it('stores equal content once, also when it is uploaded twice at the same time', async () => {
    const content = randomBytes(50_000);
    const puts = Array.from({ length: 8 }, () => store.put(Readable.from([content]), 50_000));
    expect(new Set((await Promise.all(puts)).map(({ hash }) => hash))).toEqual(new Set([hashOf(content)]));
    expect((await listed(store, -60_000)).filter((hash) => hash === hashOf(content))).toHaveLength(1);
    expect(await incoming()).toEqual([]);
  });

  it('refuses names that lead out of its folder', async () => {
    for (const name of ['../../etc/passwd', '', 'A'.repeat(64), 'a'.repeat(63), `${'a'.repeat(64)}/..`]) {
      await expect(store.delete(name)).rejects.toThrow('64 hex digits');
      await expect(store.open(name)).rejects.toThrow('64 hex digits');
    }
  });

  it('is empty before anything was stored', async () => {
    expect(await listed(make('not-there'), -60_000)).toEqual([]);
  });

  it('does not list what was stored a moment ago', async () => {
    const { hash } = await store.put(Readable.from([randomBytes(10)]), 10);
    expect(await listed(store, 60_000)).toEqual([]);
    expect(await listed(store, -60_000)).toContain(hash);
  });
});

describe('a blob store on disk', () => {
  let folder: string;
  let store: DiskBlobStore;
  beforeAll(() => {
    folder = join(root, 'disk-only');
    store = new DiskBlobStore(folder);
  });

  it('lists what was not stored for a while; storing it again makes it recent', async () => {
    const content = randomBytes(10);
    const { hash } = await store.put(Readable.from([content]), 10);
    expect((await stat(join(folder, hash.slice(0, 2), hash))).mode & 0o077).toBe(0);
    const old = new Date(Date.now() - 60_000);
    await utimes(join(folder, hash.slice(0, 2), hash), old, old);
    expect(await listed(store, 30_000)).toEqual([hash]);
    expect(await listed(store, 90_000)).toEqual([]);
    await store.put(Readable.from([content]), 10);
    expect(await listed(store, 30_000)).toEqual([]);
  });

  it('has synced content and name to the disk before it reports success', async () => {
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
});

describe('a blob store on S3', () => {
  verifies('egress:proxy', 'reaches its server through EGRESS_PROXY, and an internal one without', async () => {
    const proxy = await startForwardProxy();
    const env = loadEnv({ EGRESS_PROXY: proxy.url });
    const content = randomBytes(1_000);
    const { endpoint, ...place } = placeOf('proxied');
    const stored = async (host: string) => {
      const at = { ...place, endpoint: endpoint?.replace('127.0.0.1', host) ?? null };
      const store = new S3BlobStore(at, join(root, `s3-${host}`), egressTo(host, env));
      const { hash } = await store.put(Readable.from([content]), 1_000);
      const found = await buffer((await store.open(hash)) ?? Readable.from([]));
      return { isWhole: content.equals(found), hosts: new Set(proxy.asked.splice(0)) };
    };
    const { host } = new URL(endpoint?.replace('127.0.0.1', 'files.example.test') ?? '');
    expect(await stored('files.example.test')).toEqual({ isWhole: true, hosts: new Set([host]) });
    expect(await stored('127.0.0.1')).toEqual({ isWhole: true, hosts: new Set() });
    await proxy.close();
  });

  it('fails an upload of which the server stored only a part', async () => {
    const server = createServer((request, response) => {
      request
        .resume()
        .on('end', () => response.writeHead(200, { 'content-length': request.method === 'HEAD' ? 9 : 0 }).end());
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const store = new S3BlobStore({ ...placeOf('part'), endpoint }, join(root, 's3-part'));
    await expect(store.put(Readable.from([randomBytes(10)]), 10)).rejects.toThrow(UnavailableError);
    server.closeAllConnections();
    server.close();
  });

  it('reports a missing bucket and refused credentials as failures that may be retried', async () => {
    const place = placeOf('one');
    const content = () => Readable.from([randomBytes(10)]);
    const elsewhere = new S3BlobStore({ ...place, bucket: 'another' }, join(root, 's3-elsewhere'));
    await expect(elsewhere.put(content(), 10)).rejects.toThrow(UnavailableError);
    await expect(elsewhere.open('a'.repeat(64))).rejects.toThrow(UnavailableError);
    setS3Credentials('unknown', 'S3RVER');
    await expect(new S3BlobStore(place, join(root, 's3-wrong')).put(content(), 10)).rejects.toThrow(/try again/);
  });
});
