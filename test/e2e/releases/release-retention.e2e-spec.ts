import { describe, expect } from '@jest/globals';
import { ReleaseSweeper } from '../../../src/modules/releases/pipeline/release-sweeper.js';
import { testAccount, testApp } from '../../support/app.js';
import { createServer } from '../../support/factories.js';
import { insertRelease, releasesPath } from '../../support/releases/releases.js';
import { verifies } from '../../support/verifies.js';

const app = testApp({ RELEASE_KEEP_DAYS: '30', ROLES: 'api,worker' }, { releaseKeep: 2 });
const owner = testAccount(app);

const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000);

describe('the retention of releases', () => {
  verifies(
    'releases:retention',
    'deletes old ones with their files, not the current, newest and unfinished',
    async () => {
      const name = await createServer(app, owner);
      const release = (status: string, days: number) =>
        insertRelease(app, name, { status, created_at: daysAgo(days), lease_until: daysAgo(-1) });
      const current = await release('SUCCESS', 400);
      const waiting = await release('AUTH_REQUIRED', 300);
      const old = [await release('SUCCESS', 200), await release('FAILURE', 100)];
      const kept = [await release('SUCCESS', 29), await release('FAILURE', 60), await release('SUCCESS', 50)];
      await app.database.query(
        'UPDATE servers SET current_release_id = $1 WHERE id = (SELECT server_id FROM releases WHERE id = $1)',
        [current],
      );
      await app.database.query(
        `INSERT INTO release_artifacts (release_id, kind, hash, bytes) VALUES ($1, 'module', $2, 1)`,
        [old[0], 'f'.repeat(64)],
      );
      await app.get(ReleaseSweeper).removeOld();
      const { body } = await app.as(owner).get(releasesPath(name));
      const left = (body as { releases: { id: string }[] }).releases.map(({ id }) => id);
      expect(left.sort()).toEqual([current, waiting, ...kept].sort());
      for (const id of old) expect((await app.as(owner).get(releasesPath(name, `/${id}`))).status).toBe(404);
      const files = await app.database.query('SELECT 1 FROM release_artifacts WHERE release_id = $1', [old[0]]);
      expect(files).toEqual([]);
    },
  );
});
