import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import * as newest from '@smithery/api';
import { testAccount, testApp, uniqueName } from '../support/app.js';
import { createServer } from '../support/factories.js';
import { logWith, record } from '../support/logs/invocations.js';
import { openCli, publishedClis, type PublishedCli } from '../support/releases/published-cli.js';
import { serverIdOf } from '../support/database/server-rows.js';
import { longVerifies, verifies } from '../support/verifies.js';

/** The tool starts anew for each command. */
const SLOW_MS = 300_000;

const app = testApp();
const owner = testAccount(app);
let name: string;
let client: newest.Smithery;
let ids: string[];

beforeAll(async () => {
  name = await createServer(app, owner);
  client = new newest.Smithery({ baseURL: app.url, connectBaseURL: app.url, apiKey: owner.key });
  const serverId = await serverIdOf(app, name);
  const hour = 3_600_000;
  ids = [
    record(app, serverId, { at: Date.now() - hour, messages: ['It rains in Ulm'], wallMs: 1_234 }),
    record(app, serverId, {
      at: Date.now() - 1_000,
      status: 500,
      outcome: 'exception',
      exceptions: [{ at: Date.now(), name: 'RangeError', message: 'too far' }],
    }),
  ];
  await logWith(app, owner, name, 2);
});

describe('the published client', () => {
  verifies(
    ['contract:published-client', 'logs:list:shape'],
    'lists the log of a server, by time and text',
    async () => {
      const all = await client.servers.logs.list(name);
      expect(all.total).toBe(2);
      expect(all.invocations.map(({ id }) => id)).toEqual([...ids].reverse());
      expect(all.invocations[0]).toMatchObject({
        response: { status: 500, outcome: 'exception' },
        exceptions: [{ name: 'RangeError', message: 'too far' }],
      });
      const page = await client.servers.logs.list(name, { search: 'rains in ULM', limit: 1 });
      expect(page.invocations.map(({ id }) => id)).toEqual([ids[0]]);
      const ago = new Date(Date.now() - 60_000).toISOString();
      expect((await client.servers.logs.list(name, { from: ago })).invocations.map(({ id }) => id)).toEqual([ids[1]]);
      expect((await client.servers.logs.list(name, { to: ago })).invocations.map(({ id }) => id)).toEqual([ids[0]]);
    },
  );

  verifies(['contract:published-client', 'logs:list:not-found'], 'reports a missing server', async () => {
    const missing = client.servers.logs.list(`${name.split('/')[0]}/${uniqueName('none')}`);
    await expect(missing).rejects.toMatchObject({ status: 404, error: { error: 'Server not found' } });
    await expect(client.servers.logs.list(name, { limit: 101 })).rejects.toBeInstanceOf(newest.BadRequestError);
  });
});

for (const program of Object.keys(publishedClis) as (keyof typeof publishedClis)[]) {
  describe(program, () => {
    let cli: PublishedCli;

    beforeAll(async () => {
      cli = await openCli(program, { url: app.url, key: owner.key });
    });
    afterAll(() => cli?.close(), SLOW_MS);

    longVerifies(
      'contract:published-cli',
      'shows the log of a server, also with times of the form YYYY-MM-DD HH:MM:SS',
      async () => {
        const all = await cli.run('--table', 'mcp', 'logs', name);
        expect(all).toMatchObject({ code: 0, output: expect.stringContaining('Showing 2 of 2 invocations') });
        for (const part of ['1234ms', '1 log', '1 error', 'exception']) expect(all.output).toContain(part);
        const from = new Date(Date.now() - 60_000).toISOString().slice(0, 19).replace('T', ' ');
        const some = await cli.run('--table', 'mcp', 'logs', name, '--from', from, '--search', 'TOO FAR');
        expect(some.output).toContain('Showing 1 of 1 invocations');
      },
      SLOW_MS,
    );
  });
}
