import { WriteStream } from 'node:fs';
import { beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { StorageSpace } from '../../../src/platform/blobs/storage-space.js';
import { testAccount, testApp } from '../../support/app.js';
import { blobFiles } from '../../support/database/blob-files.js';
import { createServer } from '../../support/factories.js';
import { formBytes, openForm, putForm, releaseForm } from '../../support/documentation/raw-form.js';
import { releaseIn, releasesPath } from '../../support/releases/releases.js';
import { until } from '../../support/until.js';
import { longIt } from '../../support/jest/globals.mjs';
import { verifies } from '../../support/verifies.js';

const MB = 1024 * 1024;
const hosted = { type: 'hosted' };
const stdio = { type: 'stdio', runtime: 'node' };
const module = 'export default function createServer() { return {}; }\n';

const app = testApp({ METRICS_TOKEN: 'open' });
const owner = testAccount(app);
let name: string;

beforeAll(async () => {
  name = await createServer(app, owner);
});

function hashOf(content: Buffer | string): string {
  return createHash('sha256').update(content).digest('hex');
}

/** Nothing unfinished lies in the blob folder, and nothing but these. */
async function expectBlobs(hashes: string[]): Promise<void> {
  await until(async () => (await blobFiles(app)).incoming.length === 0, 'no unfinished file is left');
  expect((await blobFiles(app)).blobs).toEqual([...hashes].sort());
}

async function countReleases(): Promise<number> {
  return (await app.as(owner).get(releasesPath(name))).body.pagination.totalCount as number;
}

describe('an uploaded file', () => {
  it('is refused one byte past the limit of its kind, and nothing of it is kept', async () => {
    const { blobs: before } = await blobFiles(app);
    const count = await countReleases();
    const cases = [
      ['bundle', 25, stdio, {}],
      ['module', 10, hosted, {}],
      ['sourcemap', 20, hosted, { module }],
    ] as const;
    for (const [part, megabytes, payload, others] of cases) {
      const content = Buffer.alloc(megabytes * MB + 1, part);
      const answer = await putForm(app, owner, name, releaseForm(payload, { ...others, [part]: content }));
      expect([part, answer.status, answer.body]).toEqual([
        part,
        413,
        { error: `The file is larger than ${megabytes * MB} bytes (${megabytes} MB).` },
      ]);
    }
    // The module that came whole before the refused map is no release's: the next sweep takes it.
    await until(async () => (await blobFiles(app)).blobs.length === before.length, 'nothing of a refused form is kept');
    await expectBlobs(before);
    expect(await countReleases()).toBe(count);
  });

  longIt('is taken at exactly the limit of its kind', async () => {
    const { blobs: before } = await blobFiles(app);
    const files = { module: Buffer.alloc(10 * MB, ' '), sourcemap: Buffer.alloc(20 * MB, 'm') };
    const bundle = Buffer.alloc(25 * MB, 'b');
    for (const form of [releaseForm(hosted, files), releaseForm(stdio, { bundle })]) {
      const answer = await putForm(app, owner, name, form);
      expect([answer.status, answer.text]).toEqual([202, expect.any(String)]);
      await releaseIn(app, owner, name, answer.body.deploymentId as string, 'FAILURE');
    }
    await expectBlobs([...new Set([...before, ...[files.module, files.sourcemap, bundle].map(hashOf)])]);
  });

  it('is stored once, also if it is published several times', async () => {
    const content = `${module}// ${randomBytes(8).toString('hex')}\n`;
    const { blobs: before } = await blobFiles(app);
    const ids: string[] = [];
    for (const part of ['module', 'module', 'both'] as const) {
      const files: Record<string, string> =
        part === 'both' ? { module: content, sourcemap: content } : { module: content };
      const answer = await putForm(app, owner, name, releaseForm(hosted, files));
      ids.push(answer.body.deploymentId as string);
    }
    const rows = await app.database.query(
      'SELECT hash, bytes FROM release_artifacts WHERE release_id = ANY ($1::uuid[])',
      [ids],
    );
    expect(rows).toEqual(Array(4).fill({ hash: hashOf(content), bytes: content.length }));
    await expectBlobs([...before, hashOf(content)]);
  });

  it('is taken together with another, whichever comes first, from everybody at the same time', async () => {
    const [one, two] = [`${module}// 1`, `${module}// 2`];
    const servers = await Promise.all(Array.from({ length: 8 }, () => createServer(app, owner)));
    const answers = await Promise.all(
      servers.map((server, at) => {
        const [payload, first, second] = releaseForm(hosted, { module: one, sourcemap: two });
        return putForm(app, owner, server, at % 2 === 0 ? [payload, first, second] : [second, first, payload]);
      }),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(202));
  });

  longIt('does not pass through the memory of the process', async () => {
    const bytes = formBytes(releaseForm(stdio, { bundle: randomBytes(24 * MB) }));
    const request = openForm(app, owner, name, bytes.length);
    const answered = once(request, 'response');
    // The body itself lies in this same process; only what comes on top of it is the service's.
    const before = process.memoryUsage();
    let peak = 0;
    for (let at = 0; at < bytes.length; at += 256 * 1024) {
      if (!request.write(bytes.subarray(at, at + 256 * 1024))) await once(request, 'drain');
      const { arrayBuffers, heapUsed } = process.memoryUsage();
      peak = Math.max(peak, arrayBuffers + heapUsed - before.arrayBuffers - before.heapUsed);
    }
    request.end();
    const [response] = await answered;
    expect(response.statusCode).toBe(202);
    response.resume();
    expect(peak).toBeLessThan(20 * MB);
  });
});

describe('an upload that ends before its time', () => {
  it('returns 400 when the form breaks off, and nothing of it is kept', async () => {
    const { blobs } = await blobFiles(app);
    const count = await countReleases();
    const whole = formBytes(releaseForm(stdio, { bundle: randomBytes(MB) }));
    for (const length of [60, 200, MB / 2, whole.length - 40]) {
      const answer = await putForm(app, owner, name, whole.subarray(0, length));
      expect([length, answer.status]).toEqual([length, 400]);
      expect(answer.body.error).toMatch(
        /^(The body is not a complete multipart\/form-data form|Missing required part)/,
      );
    }
    await expectBlobs(blobs);
    expect(await countReleases()).toBe(count);
  });

  it('leaves no file behind when the client disconnects, and the service keeps running', async () => {
    const { blobs } = await blobFiles(app);
    const count = await countReleases();
    const whole = formBytes(releaseForm(stdio, { bundle: randomBytes(2 * MB) }));
    const leave = async (length: number) => {
      const request = openForm(app, owner, name, whole.length);
      request.on('error', () => undefined);
      await new Promise((resolve) => request.write(whole.subarray(0, length), resolve));
      return request;
    };
    const requests = await Promise.all([50, 300, 1_000, MB, MB + 1, whole.length - 40].map(leave));
    await until(async () => (await blobFiles(app)).incoming.length > 0, 'the uploads have begun');
    for (const request of requests) request.destroy();
    await expectBlobs(blobs);
    expect(await countReleases()).toBe(count);
    expect((await app.as().get('/ready')).status).toBe(200);
    // Background work may have a transaction open for a short time.
    await until(async () => {
      const { [0]: row } = await app.database.query<{ open: number }[]>(
        `SELECT count(*)::int AS open FROM pg_stat_activity
          WHERE datname = current_database() AND state LIKE 'idle in transaction%'`,
      );
      return row.open === 0;
    }, 'no transaction is left open');
  });

  it('leaves nothing behind when a later part is refused', async () => {
    const { blobs } = await blobFiles(app);
    const form = releaseForm(stdio, { bundle: randomBytes(MB) });
    const answer = await putForm(app, owner, name, [form[1], { name: 'x', content: '' }, form[0]]);
    expect(answer.status).toBe(400);
    await until(async () => (await blobFiles(app)).incoming.length === 0, 'no unfinished file is left');
    expect((await blobFiles(app)).blobs.length - blobs.length).toBeLessThanOrEqual(1);
  });
});

describe('a full disk', () => {
  verifies(
    'health:storage',
    'returns 507 with a message of the service, and is reported in /ready and a metric',
    async () => {
      const refuse = (...args: unknown[]) => {
        const done = args[args.length - 1] as (error: Error) => void;
        done(Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' }));
      };
      const writes = [
        jest.spyOn(WriteStream.prototype, '_write').mockImplementation(refuse),
        jest.spyOn(WriteStream.prototype, '_writev' as '_write').mockImplementation(refuse),
      ];
      const space = jest.spyOn(app.get(StorageSpace), 'isFull').mockResolvedValue(true);
      try {
        const answer = await putForm(app, owner, name, releaseForm(stdio, { bundle: randomBytes(MB) }));
        expect([answer.status, answer.body]).toEqual([
          507,
          { error: 'This service has no space left to store this: its operator must free some. Nothing was stored.' },
        ]);
        const ready = await app.as().get('/ready');
        expect([ready.status, ready.body.storage]).toEqual([200, 'full']);
      } finally {
        for (const spy of [...writes, space]) spy.mockRestore();
      }
      expect((await app.as().get('/ready')).body.storage).toBe('ok');
      expect((await app.as().get('/metrics')).text).toMatch(/^slipway_storage_free_bytes [1-9]/m);
    },
  );
});
