import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import supertest from 'supertest';
import { emptyDatabase } from '../support/app.js';
import { query } from '../support/database/query.js';
import { endAfterFile } from '../support/jest/leftovers.mjs';
import { openBrowser } from '../support/people/browser-session.js';
import { cleanUpPrograms, dataFolder, runProgram, type Program } from '../support/program.js';

const SLOW_MS = 300_000;

/** The operator's key in the backups, what seals their values, and Ann's password. */
const KEY = `slipway_${'u'.repeat(43)}`;
const ENCRYPTION_KEYS = `k1:${Buffer.alloc(32, 7).toString('base64')}`;
const PASSWORD = 'correct horse battery';

/** What a backup holds for hours or days only, in its own tables. */
const RENEWALS = [
  `UPDATE invitations SET expires_at = now() + interval '1 day'`,
  `UPDATE as_grants SET expires_at = now() + interval '1 day'`,
  `UPDATE recorded_calls SET recorded_at = now()`,
  `UPDATE connections SET recording_until = now() + interval '1 day' WHERE recording_until IS NOT NULL`,
];

afterAll(cleanUpPrograms, SLOW_MS);

/** Restores a backup of an earlier version to an empty place, and starts this version there. */
async function startOn(backup: string, renewals: string[] = []): Promise<{ service: Program; databaseUrl: string }> {
  const { url: databaseUrl, drop } = await emptyDatabase();
  endAfterFile(drop);
  const settings = {
    DATA_DIR: await dataFolder(),
    DATABASE_URL: databaseUrl,
    ENCRYPTION_KEYS,
    LOG_RETENTION_DAYS: '3650',
  };
  // The permissions of a backup are not those that a checkout has.
  const folder = join(await dataFolder(), 'backup');
  await cp(`test/upgrade/${backup}`, folder, { recursive: true });
  const restore = runProgram('cli/slipway.js', settings, { args: ['restore', folder] });
  expect([await restore.ended, restore.output()]).toEqual([0, expect.stringMatching(/^Restored \d+ rows/)]);
  for (const sql of renewals) await query(databaseUrl, sql);
  return { service: runProgram('main.js', settings), databaseUrl };
}

const as = (url: string, key: string) => ({
  get: (path: string) => supertest(url).get(path).auth(key, { type: 'bearer' }),
  post: (path: string, body: object = {}) => supertest(url).post(path).auth(key, { type: 'bearer' }).send(body),
});

async function stop(service: Program): Promise<void> {
  service.kill('SIGTERM');
  expect(await service.ended).toBe(0);
}

describe('a backup of 0.1.0', () => {
  it(
    'is restored, migrated by the start, and used',
    async () => {
      const { service } = await startOn('0.1.0');
      const { get } = as(await service.url(), KEY);
      expect((await get('/connect/acme/weather')).body).toMatchObject({
        connectionId: 'weather',
        metadata: { userId: 'u-1' },
      });
      expect((await get('/servers/acme%2Ftracker')).body).toMatchObject({ displayName: 'Tracker' });
      await stop(service);
    },
    SLOW_MS,
  );
});

describe('a backup of the last landing', () => {
  it(
    'is restored and migrated by the start; all that it holds is read and run',
    async () => {
      const { service, databaseUrl } = await startOn('landed', RENEWALS);
      const url = await service.url();
      const operator = as(url, KEY);
      const { accounts } = (await operator.get('/accounts?pageSize=100')).body as {
        accounts: { id: string; name: string; kind: string; isOperator: boolean; disabled: boolean }[];
      };
      const shown = accounts.map(({ name, kind, isOperator, disabled }) => [name, kind, isOperator, disabled]);
      expect(shown.sort()).toEqual([
        ['ann', 'user', false, false],
        ['bob', 'user', false, false],
        ['carol', 'user', true, false],
        ['dora', 'user', false, true],
        ['erin', 'user', false, false],
        ['operator', 'user', true, false],
        ['team', 'organization', false, false],
      ]);
      const idOf = (name: string) => accounts.find((account) => account.name === name)?.id;
      const signIn = async (name: string) =>
        (await openBrowser({ url }).submit('/login', { name, password: PASSWORD })).status;
      expect([await signIn('ann'), await signIn('erin'), await signIn('bob')]).toEqual([303, 303, 403]);
      const keyOf = async (name: string) =>
        (await operator.post(`/accounts/${idOf(name)}/api-keys`, { name: 'upgraded' })).body.key as string;
      const [ann, bob, carol] = [
        as(url, await keyOf('ann')),
        as(url, await keyOf('bob')),
        as(url, await keyOf('carol')),
      ];

      const some = expect.arrayContaining([expect.anything()]);
      const named = (...names: string[]) =>
        expect.arrayContaining(names.map((name) => expect.objectContaining({ name })));
      const expected = [
        [ann, '/accounts/me/api-keys', { apiKeys: named('laptop', 'reader') }],
        [ann, '/accounts/me/memberships', { memberships: [{ organizationName: 'team', role: 'owner' }] }],
        [ann, `/accounts/${idOf('team')}/members`, { pagination: { totalCount: 3 } }],
        [ann, `/accounts/${idOf('team')}/invitations`, { pagination: { totalCount: 2 } }],
        [carol, '/accounts/me/invitations', { invitations: [{ organizationName: 'team', role: 'guest' }] }],
        [operator, `/accounts/${idOf('bob')}/invitations`, { pagination: { totalCount: 1 } }],
        [
          operator,
          `/accounts/${idOf('bob')}/usage`,
          { limits: expect.arrayContaining([{ name: 'connections', used: 0, limit: 50 }]) },
        ],
        [ann, '/accounts/me/logins', { logins: some }],
        [ann, '/accounts/me/changes', { changes: some }],
        [ann, '/servers/acme%2Fweather', { displayName: 'Weather', description: 'Forecasts for every place.' }],
        [ann, '/servers?q=forecasts', { servers: [{ qualifiedName: 'acme/weather', verified: true }] }],
        [ann, '/servers/acme%2Fweather/releases/latest', { type: 'external_shttp', status: 'SUCCESS' }],
        [ann, '/servers/acme%2Fhosted/releases', { pagination: { totalCount: 2 } }],
        [ann, '/servers/acme%2Fhosted/secrets', [{ name: 'TOKEN' }]],
        [ann, '/servers/acme%2Fhosted/runtime', { logPayloads: true }],
        [ann, '/servers/acme%2Fhosted/logs', { invocations: some }],
        [ann, '/servers/acme%2Fbundled/releases/latest', { type: 'stdio', status: 'SUCCESS' }],
        [ann, '/servers/acme%2Fbundled/access-requests', { requests: some }],
        [bob, '/servers/bob%2Fprivate', { visibility: 'private' }],
        [bob, '/servers/bob%2Fprivate/grants', { grants: some }],
        [bob, '/namespaces/bob/grants', { grants: some }],
        [ann, '/skills/acme/review', { slug: 'review' }],
        [ann, '/connect/acme/remote', { name: 'Remote', metadata: { userId: 'u-1' } }],
        [ann, '/connect/acme/laptop/uplink', {}],
        [ann, '/connect/acme/recorded/recording', { enabled: true, calls: 1 }],
        [ann, '/connect/acme/recorded/recording/calls', { calls: some }],
        [ann, '/connect/acme/hosted/grants', { grants: [{ level: 'call', tools: { allow: ['echo'] } }] }],
        [ann, '/connect/acme/mock/grants', { grants: [{ level: 'call' }] }],
        [ann, '/connect/acme/module/logs', { invocations: some }],
      ] as const;
      const read: [string, unknown][] = [];
      for (const [by, path] of expected) read.push([path, (await by.get(path)).body]);
      expect(Object.fromEntries(read)).toMatchObject(
        Object.fromEntries(expected.map(([, path, body]) => [path, body])),
      );
      expect((await ann.get('/servers/acme%2Fweather/icon')).headers['content-type']).toBe('image/png');
      expect((await ann.get('/servers/acme%2Fbundled/download')).status).toBe(200);
      expect((await ann.get('/skills/acme/review/download')).status).toBe(200);

      for (const [by, id, text] of [
        [ann, 'hosted', 'hi'],
        [bob, 'hosted', 'hi'],
        [ann, 'module', 'hi'],
        [ann, 'mock', 'pong'],
        [ann, 'replayed', 'stored'],
      ] as const) {
        const message = id === 'replayed' ? 'stored' : 'hi';
        const { body } = await by.post(`/connect/acme/${id}/.tools/echo`, { message });
        expect([id, body]).toEqual([id, expect.objectContaining({ content: [{ type: 'text', text }] })]);
      }
      expect(await query(databaseUrl, 'SELECT name FROM accounts WHERE name_skeletons IS NULL')).toEqual([]);
      await stop(service);
    },
    SLOW_MS,
  );
});
