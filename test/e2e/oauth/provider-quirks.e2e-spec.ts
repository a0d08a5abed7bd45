/**
 * Providers with one quirk each, through the whole life of a login: the page, a call, a refresh, a second process
 * beside the first, and its restart.
 */
import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { testAccount, testApp, type TestApp } from '../../support/app.js';
import { CredentialsService } from '../../../src/modules/oauth/credentials.service.js';
import { createConnection } from '../../support/factories.js';
import { age, personAt } from '../../support/people/credentials.js';
import { startQuirky, type Quirk, type QuirkyProvider } from '../../support/people/quirky-provider.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const owner = testAccount(app);
let provider: QuirkyProvider;
let second: TestApp;

beforeAll(async () => {
  [provider, second] = await Promise.all([startQuirky(), app.sibling()]);
});
afterAll(() => Promise.all([provider.close(), second.close()]));

/** What the first refresh answers: `login` wants a person again, `later` another try. */
type FirstRefresh = 'fine' | 'login' | 'later';

const refused = (error: string) => ({ status: 400, body: { error } });

/** Each quirk is made anew for a login: some remember what they gave. */
const quirks: [name: string, first: FirstRefresh, quirk: () => Quirk][] = [
  // The first: the others use its second client.
  [
    'forgets the client',
    'login',
    () => {
      let registered = 0;
      return ({ endpoint, params, headers }, answer) => {
        if (endpoint === 'register') {
          registered += 1;
          return { ...answer, body: { ...(answer.body as object), client_id: registered === 1 ? 'old' : 'new' } };
        }
        const basic = Buffer.from(headers.authorization?.slice(6) ?? '', 'base64').toString();
        const isOld = (basic.startsWith('old:') || params.get('client_id') === 'old') && params.has('refresh_token');
        return endpoint === 'token' && isOld ? { status: 404, body: { message: 'Client not found' } } : undefined;
      };
    },
  ],
  [
    'spells its issuer with a slash',
    'fine',
    () => (request, answer) =>
      request.endpoint === 'server'
        ? { ...answer, body: { ...(answer.body as object), issuer: `${provider.origin}/` } }
        : undefined,
  ],
  [
    'refuses "resource"',
    'fine',
    () => (request) =>
      request.endpoint === 'token' && request.params.has('resource') ? refused('invalid_target') : undefined,
  ],
  [
    'answers forms',
    'fine',
    () => (request, answer) =>
      request.endpoint === 'token'
        ? { type: 'application/x-www-form-urlencoded', body: new URLSearchParams(answer.body as never).toString() }
        : undefined,
  ],
  [
    'is behind a firewall that wants to know who asks',
    'fine',
    () => (request) =>
      request.endpoint === 'authorize' || request.headers['user-agent']?.startsWith('Slipway/')
        ? undefined
        : { status: 403, type: 'text/html', body: '<p>' },
  ],
  [
    // The token before stays good until its successor is used.
    'rotates, and loses an answer',
    'later',
    () => {
      const good: string[] = [];
      let isLost = false;
      return ({ endpoint, params }, answer) => {
        if (endpoint !== 'token') return undefined;
        const used = params.get('refresh_token');
        if (used !== null && !good.includes(used)) return refused('invalid_grant');
        if (used !== null) good.splice(0, good.indexOf(used));
        good.push((answer.body as { refresh_token: string }).refresh_token);
        if (used === null || isLost) return undefined;
        isLost = true;
        return { status: 502, body: '' };
      };
    },
  ],
];

async function logIn(path: string): Promise<void> {
  const { setupUrl } = (await app.as(owner).get(path)).body.status;
  const person = personAt(app);
  await person.open(setupUrl);
  expect((await person.press(setupUrl)).html).toContain('Authorized');
}

/** Status of a call. `how` lets its token end before, or a pause after a failed refresh. */
async function called(at: TestApp, path: string, how: 'now' | 'ended' | 'retry' = 'now'): Promise<number> {
  const [{ id }] = await app.database.query('SELECT id FROM connections WHERE connection_id = $1', [
    path.split('/').at(-1),
  ]);
  if (how === 'ended') await age(app, { kind: 'connection', id }, 'ended');
  await app.database.query('UPDATE upstream_credentials SET retry_at = NULL WHERE owner_id = $1', [id]);
  const { cache } = at.get(CredentialsService) as unknown as { cache: { drop(key: string): void } };
  if (how !== 'now') cache.drop(`connection/${id}`);
  return (await at.as(owner).post(`${path}/.tools/run`, {})).status;
}

describe('a provider that', () => {
  const lives: [path: string, quirk: Quirk][] = [];

  for (const [name, first, quirk] of quirks) {
    verifies('provider:life', `${name} keeps a login, in two processes`, async () => {
      provider.quirk = quirk();
      const { path } = await createConnection(app, owner, { mcpUrl: provider.mcpUrl });
      await logIn(path);
      lives.push([path, provider.quirk]);
      expect(await called(app, path)).toBe(200);
      const refreshed = await called(app, path, 'ended');
      expect([name, refreshed]).toEqual([name, { fine: 200, login: 409, later: 502 }[first]]);
      if (first === 'login') await logIn(path);
      expect(await called(app, path, 'retry')).toBe(200);
      expect(await called(second, path)).toBe(200);
      const before = provider.of('token').length;
      expect(await called(second, path, 'ended')).toBe(200);
      expect(await called(app, path, 'retry')).toBe(200);
      expect(provider.of('token').length - before).toBe(1);
    });
  }

  verifies('provider:life', 'has one of these quirks keeps it over a restart', async () => {
    await second.close();
    second = await app.sibling();
    for (const [path, quirk] of lives) {
      provider.quirk = quirk;
      expect([path, await called(second, path), await called(second, path, 'ended')]).toEqual([path, 200, 200]);
    }
    expect(lives).toHaveLength(quirks.length);
  });
});
