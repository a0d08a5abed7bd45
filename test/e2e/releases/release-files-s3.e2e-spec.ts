import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import supertest from 'supertest';
import { BlobSweeper } from '../../../src/modules/releases/blob-sweeper.js';
import { BlobStore } from '../../../src/platform/blobs/blob-store.js';
import { startApp, type TestAccount, type TestApp } from '../../support/app.js';
import { createServer } from '../../support/factories.js';
import { publishHosted } from '../../support/hosting/hosted-releases.js';
import { bundleOf } from '../../support/releases/bundles.js';
import { publish, published, releaseIn } from '../../support/releases/releases.js';
import { pathOf } from '../../support/database/server-rows.js';
import { startS3 } from '../../support/s3.js';
import { verifies } from '../../support/verifies.js';

/** A worker that is an MCP server without tools. */
const SERVER = `export default {
  async fetch(request) {
    if (request.method === 'GET') return new Response('hello');
    const { id, method } = await request.json();
    if (id === undefined) return new Response(null, { status: 202 });
    const opened = { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'one', version: '1' } };
    return Response.json({ jsonrpc: '2.0', id, result: method === 'initialize' ? opened : { tools: [] } });
  },
};`;
const stdio = { type: 'stdio', runtime: 'node' };

let s3: Awaited<ReturnType<typeof startS3>>;
let app: TestApp;
/** A process with a data folder of its own. */
let other: TestApp;
let owner: TestAccount;
let folder: string;

beforeAll(async () => {
  s3 = await startS3();
  folder = await mkdtemp(join(tmpdir(), 'slipway-data-'));
  app = await startApp({ BLOB_URL: s3.blobUrl, ROLES: 'api,worker' });
  other = await app.sibling({ ROLES: 'api,host', DATA_DIR: folder });
  owner = await app.account();
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

async function storedFiles(): Promise<string[]> {
  const hashes: string[] = [];
  for await (const hash of app.get(BlobStore).list(new Date(Date.now() + 60_000))) hashes.push(hash);
  return hashes;
}

const bytesOf = (response: supertest.Response, done: (error: Error | null, bytes: Buffer) => void) => {
  const chunks: Buffer[] = [];
  response.on('data', (chunk: Buffer) => chunks.push(chunk));
  response.on('end', () => done(null, Buffer.concat(chunks)));
};

describe('uploaded files in S3', () => {
  verifies(
    'files:s3',
    'are run and downloaded by a process that shares no folder with the one that received them',
    async () => {
      const { name, url } = await publishHosted(app, owner, SERVER);
      const run = await supertest(url).get('/hello').set('authorization', `Bearer ${owner.key}`);
      expect([run.status, run.text]).toEqual([200, 'hello']);
      const bundle = await bundleOf();
      await releaseIn(app, owner, name, await published(app, owner, name, stdio, { bundle }), 'SUCCESS');
      const download = await other
        .as(owner)
        .get(pathOf(name, '/download'))
        .buffer(true)
        .parse(bytesOf as never);
      expect(bundle.equals(download.body as Buffer)).toBe(true);
      const head = await supertest(other.url)
        .head(pathOf(name, '/download'))
        .set('authorization', `Bearer ${owner.key}`);
      expect([head.status, head.headers['content-length']]).toEqual([200, String(bundle.length)]);
    },
  );

  verifies('files:s3', 'are removed with their server', async () => {
    const before = await storedFiles();
    const name = await createServer(app, owner);
    const bundle = await bundleOf({ description: 'of a server that goes' });
    await releaseIn(app, owner, name, await published(app, owner, name, stdio, { bundle }), 'SUCCESS');
    expect(await storedFiles()).toHaveLength(before.length + 1);
    expect((await app.as(owner).delete(pathOf(name))).status).toBe(200);
    await (app.get(BlobSweeper) as unknown as { removeGarbage(): Promise<void> }).removeGarbage();
    expect(new Set(await storedFiles())).toEqual(new Set(before));
  });

  verifies('files:s3', 'are rejected with 503 while S3 is unavailable', async () => {
    const name = await createServer(app, owner);
    await s3.close();
    const response = await publish(app, owner, name, stdio, { bundle: await bundleOf() });
    expect([response.status, response.body, response.headers['retry-after']]).toEqual([
      503,
      { error: 'The file storage of this service cannot be used at the moment: try again.' },
      '5',
    ]);
    expect((await app.as(owner).get(pathOf(name, '/releases'))).body).toMatchObject({ releases: [] });
  });
});
