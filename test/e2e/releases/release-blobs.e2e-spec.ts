// Also run with the queue on Redis by test:long: jobs, and messages between processes.
import { beforeAll, describe, expect, it } from '@jest/globals';
import { createHash, randomBytes } from 'node:crypto';
import { utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { BlobStore } from '../../../src/platform/blobs/blob-store.js';
import { Schedule } from '../../../src/platform/schedule/schedule.js';
import { BlobSweeper } from '../../../src/modules/releases/blob-sweeper.js';
import { testAccount, testApp } from '../../support/app.js';
import { blobFiles } from '../../support/database/blob-files.js';
import { bundleOf } from '../../support/releases/bundles.js';
import { createServer } from '../../support/factories.js';
import { publish, published, releaseIn } from '../../support/releases/releases.js';
import { until } from '../../support/until.js';
import { longIt } from '../../support/jest/globals.mjs';
import { longVerifies } from '../../support/verifies.js';

const stdio = { type: 'stdio', runtime: 'node' };
const hosted = { type: 'hosted' };

const app = testApp({ BLOB_URL: undefined });
const owner = testAccount(app);

beforeAll(async () => {
  // Changes files of the data folder, also with TEST_FILES=s3.
  // From here on only the tests themselves run sweeps.
  await app.get(Schedule).beforeApplicationShutdown();
});

/** The sweeps that otherwise come by the clock. */
function sweeper(): { removeGarbage(): Promise<void>; removeOrphans(): Promise<void> } {
  return app.get(BlobSweeper) as never;
}

const isStored = async (content: Buffer) =>
  (await blobFiles(app)).blobs.includes(createHash('sha256').update(content).digest('hex'));

async function removeServer(name: string): Promise<void> {
  expect((await app.as(owner).delete(`/servers/${encodeURIComponent(name)}`)).status).toBe(200);
}

async function uniqueBundle(): Promise<Buffer> {
  return bundleOf({ description: randomBytes(8).toString('hex') });
}

/** Stores a file past everything, `hours` old. */
async function storeAged(content: Buffer, hours: number): Promise<void> {
  const hash = createHash('sha256').update(content).digest('hex');
  const file = join(app.env.dataDir, 'blobs', hash.slice(0, 2), hash);
  const at = new Date(Date.now() - hours * 3_600_000);
  await utimes(file, at, at);
}

/** The other files of the run have databases of their own on the same server. */
const waiting = `SELECT 1 FROM pg_stat_activity
  WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event = 'advisory'`;

describe('deleting a server', () => {
  longVerifies('server:delete:cascades', 'takes its releases, their logs and their files with it', async () => {
    const name = await createServer(app, owner);
    const [bundle, module] = [await uniqueBundle(), randomBytes(100)];
    const first = await published(app, owner, name, stdio, { bundle });
    await releaseIn(app, owner, name, first, 'SUCCESS');
    const second = await published(app, owner, name, hosted, { module });
    await releaseIn(app, owner, name, second, 'FAILURE');
    expect([await isStored(bundle), await isStored(module)]).toEqual([true, true]);
    await removeServer(name);
    for (const table of ['release_logs', 'release_artifacts']) {
      expect(
        await app.database.query(`SELECT 1 FROM ${table} WHERE release_id = ANY ($1::uuid[])`, [[first, second]]),
      ).toEqual([]);
    }
    expect(await app.database.query('SELECT 1 FROM releases WHERE id = ANY ($1::uuid[])', [[first, second]])).toEqual(
      [],
    );
    // Within seconds, without anybody asking.
    const sweeping = await app.sibling({ ROLES: 'worker' });
    await until(async () => !(await isStored(bundle)) && !(await isStored(module)), 'the files are gone');
    await until(
      async () => (await app.database.query('SELECT 1 FROM blob_garbage')).length === 0,
      'nothing is left to do',
    );
    await sweeping.close();
  });

  it('leaves a file that another server has as well, until that is deleted too', async () => {
    const [one, two] = [await createServer(app, owner), await createServer(app, owner)];
    const bundle = await uniqueBundle();
    for (const name of [one, two]) {
      await releaseIn(app, owner, name, await published(app, owner, name, stdio, { bundle }), 'SUCCESS');
    }
    await removeServer(one);
    await sweeper().removeGarbage();
    expect(await isStored(bundle)).toBe(true);
    const download = await app.as(owner).get(`/servers/${encodeURIComponent(two)}/download`);
    expect([download.status, download.headers['content-length']]).toEqual([200, String(bundle.length)]);
    await removeServer(two);
    await sweeper().removeGarbage();
    expect(await isStored(bundle)).toBe(false);
  });
});

describe('a file that no release names', () => {
  it('is removed when it is a day old, and not before', async () => {
    const name = await createServer(app, owner);
    const [old, young, named] = [randomBytes(50), randomBytes(51), await uniqueBundle()];
    const blobs = app.get(BlobStore);
    for (const content of [old, young]) await blobs.put(Readable.from([content]), 100);
    await published(app, owner, name, stdio, { bundle: named });
    await storeAged(old, 25);
    await storeAged(young, 23);
    await storeAged(named, 1_000);
    const incoming = join(app.env.dataDir, 'blobs', 'incoming');
    for (const [file, hours] of [
      ['cut-off', 25],
      ['under-way', 1],
    ] as const) {
      await writeFile(join(incoming, file), 'x');
      const at = new Date(Date.now() - hours * 3_600_000);
      await utimes(join(incoming, file), at, at);
    }
    await sweeper().removeOrphans();
    expect([await isStored(old), await isStored(young), await isStored(named)]).toEqual([false, true, true]);
    expect((await blobFiles(app)).incoming).toEqual(['under-way']);
  });

  it('is kept when it is published again, at any age', async () => {
    const name = await createServer(app, owner);
    const bundle = await uniqueBundle();
    await app.get(BlobStore).put(Readable.from([bundle]), 100_000);
    await storeAged(bundle, 48);
    const id = await published(app, owner, name, stdio, { bundle });
    await sweeper().removeOrphans();
    await releaseIn(app, owner, name, id, 'SUCCESS');
    expect(await isStored(bundle)).toBe(true);
  });
});

describe('publishing a file while the same is swept', () => {
  longIt('never loses it: it is stored, or the publisher receives a retryable error', async () => {
    const bundle = await uniqueBundle();
    for (let round = 0; round < 12; round += 1) {
      const [old, next] = [await createServer(app, owner), await createServer(app, owner)];
      await published(app, owner, old, stdio, { bundle });
      await removeServer(old);
      const [response] = await Promise.all([
        publish(app, owner, next, stdio, { bundle }),
        sweeper().removeGarbage(),
        sweeper().removeGarbage(),
      ]);
      if (response.status === 503) {
        expect(response.body).toEqual({ error: 'An uploaded file was removed at the same moment: publish again.' });
        expect(response.headers['retry-after']).toBe('1');
        const again = await published(app, owner, next, stdio, { bundle });
        await releaseIn(app, owner, next, again, 'SUCCESS');
      } else {
        expect(response.status).toBe(202);
        const { deploymentId } = response.body as { deploymentId: string };
        await releaseIn(app, owner, next, deploymentId, 'SUCCESS');
      }
      expect(await isStored(bundle)).toBe(true);
      await removeServer(next);
      await sweeper().removeGarbage();
    }
  });

  it('waits for a sweep of its file, and gets a retryable error when the file was removed', async () => {
    const name = await createServer(app, owner);
    const bundle = await uniqueBundle();
    const hash = createHash('sha256').update(bundle).digest('hex');
    const holder = app.database.createQueryRunner();
    await holder.startTransaction();
    await holder.query(`SELECT pg_advisory_xact_lock(hashtextextended('blob ' || $1, 0))`, [hash]);
    const answer = publish(app, owner, name, stdio, { bundle }).then((response) => response);
    await until(async () => (await app.database.query<unknown[]>(waiting)).length > 0, 'the publisher waits');
    await app.get(BlobStore).delete(hash);
    await holder.commitTransaction();
    await holder.release();
    const { status, headers, body } = await answer;
    expect([status, headers['retry-after'], body]).toEqual([
      503,
      '1',
      { error: 'An uploaded file was removed at the same moment: publish again.' },
    ]);
    const again = await published(app, owner, name, stdio, { bundle });
    await releaseIn(app, owner, name, again, 'SUCCESS');
  });

  it('waits for a release that is being stored', async () => {
    const name = await createServer(app, owner);
    const bundle = await uniqueBundle();
    await published(app, owner, name, stdio, { bundle });
    const hash = createHash('sha256').update(bundle).digest('hex');
    // A transaction that names the file, not yet committed.
    const holder = app.database.createQueryRunner();
    await holder.startTransaction();
    await holder.query(`SELECT pg_advisory_xact_lock(hashtextextended('blob ' || $1, 0))`, [hash]);
    await removeServer(name);
    let isSwept = false;
    const swept = sweeper()
      .removeGarbage()
      .then(() => (isSwept = true));
    await until(async () => (await app.database.query<unknown[]>(waiting)).length > 0, 'the sweep waits');
    expect([isSwept, await isStored(bundle)]).toEqual([false, true]);
    await holder.commitTransaction();
    await holder.release();
    await swept;
    expect(await isStored(bundle)).toBe(false);
  });
});
