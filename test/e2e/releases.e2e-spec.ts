import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startApp, type TestAccount, type TestApp } from '../support/app.js';
import { startEverything, type EverythingServer } from '../support/everything.js';
import { createServer } from '../support/factories.js';
import { published, releaseIn } from '../support/releases.js';

let app: TestApp;
let owner: TestAccount;
let everything: EverythingServer;

beforeAll(async () => {
  [app, everything] = await Promise.all([startApp({ RELEASE_LEASE_MS: '2000' }), startEverything()]);
  owner = await app.account();
});
afterAll(async () => {
  await app.close();
  await everything.close();
});

describe('an external release', () => {
  it('is scanned, becomes current, and shows what the server offers', async () => {
    const name = await createServer(app, owner);
    const id = await published(app, owner, name, { type: 'external', upstreamUrl: everything.url });
    const release = await releaseIn(app, owner, name, id, 'SUCCESS');
    expect(release.logs.map(({ stage, level }) => `${stage} ${level}`)).toEqual([
      'deploy start',
      'deploy info',
      'deploy end',
      'scan start',
      'scan success',
      'scan end',
      'metadata start',
      'metadata info',
      'metadata end',
      'publish start',
      'publish success',
    ]);
  });

  it('fails in its scan when nothing listens', async () => {
    const name = await createServer(app, owner);
    const id = await published(app, owner, name, { type: 'external', upstreamUrl: 'http://127.0.0.1:9/mcp' });
    const release = await releaseIn(app, owner, name, id, 'FAILURE');
    expect(release.logs.at(-1)).toMatchObject({ stage: 'scan', level: 'error' });
  });
});
