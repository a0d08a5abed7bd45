import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { testAccount, testApp, uniqueName } from '../support/app.js';
import { startAuthorizationServer, type AuthorizationServer } from '../support/people/authorization-server.js';
import { personAt } from '../support/people/credentials.js';
import { startEverything, type EverythingServer } from '../support/upstream/everything.js';
import { createNamespace, createServer } from '../support/factories.js';
import { bundledTools, packBundle } from '../support/releases/mcpb.js';
import { newestCli, openCli, publishedClis, type PublishedCli, type Run } from '../support/releases/published-cli.js';
import { readRelease, releaseIn } from '../support/releases/releases.js';
import { pathOf } from '../support/database/server-rows.js';
import { until } from '../support/until.js';
import { startUpstream, type Upstream } from '../support/upstream/upstream.js';
import { longVerifies, verifies } from '../support/verifies.js';

/** The tool polls every two seconds, and starts anew for each command. */
const SLOW_MS = 300_000;

const app = testApp();
const owner = testAccount(app);
let namespace: string;
let everything: EverythingServer;
let upstream: Upstream;
let authorization: AuthorizationServer;

beforeAll(async () => {
  [everything, upstream, authorization] = await Promise.all([
    startEverything(),
    startUpstream(),
    startAuthorizationServer(),
  ]);
  namespace = await createNamespace(app, owner);
}, SLOW_MS);

afterAll(async () => {
  await Promise.all([app?.close(), everything?.close(), upstream?.close(), authorization?.close()]);
}, SLOW_MS);

/** The last line that is JSON. */
function jsonOf({ output }: Run): Record<string, unknown> {
  const line = output.split('\n').findLast((text) => text.startsWith('{'));
  return JSON.parse(line ?? 'null') as Record<string, unknown>;
}

for (const program of Object.keys(publishedClis) as (keyof typeof publishedClis)[]) {
  describe(program, () => {
    let cli: PublishedCli;

    beforeAll(async () => {
      cli = await openCli(program, { url: app.url, key: owner.key });
    });
    afterAll(() => cli?.close(), SLOW_MS);

    const toolsOf = async (name: string): Promise<string[]> => {
      const { body } = await app.as(owner).get(pathOf(name));
      return (body as { tools: { name: string }[] }).tools.map((tool) => tool.name);
    };

    const publishing = 'publishes the URL of a server that does not exist yet, and follows it to the end';
    const publishes = async () => {
      const name = `${namespace}/${uniqueName('new')}`;
      const run = await cli.run('--table', 'mcp', 'publish', everything.url, '-n', name);
      expect(run).toMatchObject({ code: 0, output: expect.stringContaining('Release successful') });
      const { mcpUrl } = await readRelease(app, owner, name, 'latest');
      for (const part of ['[scan] Found', 'the security check passed', String(mcpUrl)]) {
        expect(run.output).toContain(part);
      }
      expect(await toolsOf(name)).toContain('echo');
    };
    if (program === newestCli) verifies('contract:published-cli', publishing, publishes, SLOW_MS);
    else longVerifies('contract:published-cli', publishing, publishes, SLOW_MS);

    longVerifies(
      'contract:published-cli',
      'publishes for programs: returns immediately and leaves a watcher that sees the end',
      async () => {
        const name = await createServer(app, owner, { namespace });
        const run = await cli.run('mcp', 'publish', everything.url, '-n', name);
        expect(run).toMatchObject({ code: 0 });
        const told = jsonOf(run);
        expect(told).toMatchObject({ qualifiedName: name, status: 'PENDING' });
        await releaseIn(app, owner, name, String(told.deploymentId), 'SUCCESS');
        // The watcher ends after the release, perhaps before the tool has written its log, which is therefore not compared.
        await until(async () => (await cli.watchers()).length === 0, 'the watcher has seen the end', SLOW_MS / 2);
      },
      SLOW_MS,
    );

    longVerifies(
      'contract:published-cli',
      'reports a missing namespace, and creates nothing',
      async () => {
        const missing = uniqueName('none');
        const run = await cli.run('mcp', 'publish', everything.url, '-n', `${missing}/server`);
        expect(run).toMatchObject({ code: 1, output: expect.stringContaining(`Namespace "${missing}" not found`) });
        expect((await app.as(owner).get(pathOf(`${missing}/server`))).status).toBe(404);
      },
      SLOW_MS,
    );

    longVerifies(
      'contract:published-cli',
      'prints the reason of a failed release',
      async () => {
        const name = await createServer(app, owner, { namespace });
        const run = await cli.run('--table', 'mcp', 'publish', 'http://127.0.0.1:9/mcp', '-n', name);
        expect(run.code).toBe(1);
        expect(run.output).toMatch(/Release failed: Nothing listens on 127\.0\.0\.1:9/);
        expect((await readRelease(app, owner, name, 'latest')).status).toBe('FAILURE');
      },
      SLOW_MS,
    );

    longVerifies(
      'contract:published-cli',
      'shows the authorization link, and resumes',
      async () => {
        const name = await createServer(app, owner, { namespace });
        const guarded = await authorization.protect(upstream.url);
        const run = await cli.run('--table', 'mcp', 'publish', guarded.url, '-n', name);
        const [, link = ''] = /Authorize at (\S+)/.exec(run.output) ?? [];
        expect({ ...run, link }).toMatchObject({ code: 0, link: expect.stringContaining(`${app.env.baseUrl}/setup/`) });
        // Published tools look for this line, and show it to nobody.
        expect(run.output).not.toMatch(/\] auth_required/);
        expect((await readRelease(app, owner, name, 'latest')).status).toBe('AUTH_REQUIRED');

        const again = await cli.run('--table', 'mcp', 'publish', '--resume', '-n', name);
        const [, newest = ''] = [...again.output.matchAll(/Authorize at (\S+)/g)].at(-1) ?? [];
        const person = personAt(app);
        await person.open(newest);
        expect((await person.press(newest)).html).toContain('Authorized');
        await releaseIn(app, owner, name, 'latest', 'SUCCESS');
        expect(await toolsOf(name)).toContain('echo');
      },
      SLOW_MS,
    );

    longVerifies(
      'contract:published-cli',
      'resumes a release whose authorization timed out',
      async () => {
        const name = await createServer(app, owner, { namespace });
        const guarded = await authorization.protect(upstream.url);
        expect((await cli.run('--table', 'mcp', 'publish', guarded.url, '-n', name)).code).toBe(0);
        await app.database.query(
          `UPDATE releases SET status = 'AUTH_TIMEOUT', lease_until = NULL WHERE status = 'AUTH_REQUIRED'`,
        );
        const run = await cli.run('--table', 'mcp', 'publish', '--resume', '-n', name);
        expect(run).toMatchObject({ code: 0, output: expect.stringContaining('Authorize at ') });
        expect((await readRelease(app, owner, name, 'latest')).status).toBe('AUTH_REQUIRED');
      },
      SLOW_MS,
    );

    longVerifies(
      'contract:published-cli',
      'publishes a bundle',
      async () => {
        const file = join(cli.folder, 'weather.mcpb');
        await writeFile(file, await packBundle());
        const name = `${namespace}/${uniqueName('bundle')}`;
        const run = await cli.run('--table', 'mcp', 'publish', file, '-n', name);
        expect(run).toMatchObject({ code: 0, output: expect.stringContaining('Release successful') });
        expect(await toolsOf(name)).toEqual(bundledTools.map((tool) => tool.name));
      },
      SLOW_MS,
    );

    longVerifies(
      'contract:published-cli',
      'publishes a configSchema in the command or in a file, and reports the problem with an invalid one',
      async () => {
        const schema = {
          type: 'object',
          properties: { city: { type: 'string', 'x-from': { query: 'city' } } },
          required: [],
        };
        const file = join(cli.folder, 'schema.json');
        await writeFile(file, JSON.stringify(schema));
        for (const schemaOption of [JSON.stringify(schema), file]) {
          const name = await createServer(app, owner, { namespace });
          const args = ['mcp', 'publish', everything.url, '-n', name, '--config-schema', schemaOption];
          expect(await cli.run('--table', ...args)).toMatchObject({ code: 0 });
          const { body } = await app.as(owner).get(pathOf(name));
          expect((body as { connections: object[] }).connections).toMatchObject([{ configSchema: schema }]);
        }
        const name = await createServer(app, owner, { namespace });
        const wrong = await cli.run(
          'mcp',
          'publish',
          everything.url,
          '-n',
          name,
          '--config-schema',
          '{"type":"array"}',
        );
        expect(wrong.code).toBe(1);
        expect(wrong.output).toMatch(/400 .*configSchema/);
      },
      SLOW_MS,
    );

    longVerifies(
      'contract:published-cli',
      'finds servers, as text and as JSON',
      async () => {
        const word = uniqueName('word').replace('-', '');
        const name = await createServer(app, owner, { namespace, displayName: `Weather ${word}` });
        await createServer(app, owner, { namespace });
        const search = await cli.run('--json', 'mcp', 'search', word);
        expect(search).toMatchObject({ code: 0 });
        expect(search.output).toContain(name);
        const table = await cli.run(
          '--table',
          'mcp',
          'search',
          '--namespace',
          namespace,
          '--limit',
          '1',
          '--page',
          '2',
        );
        expect(table).toMatchObject({ code: 0, output: expect.stringContaining(namespace) });
        const none = await cli.run('mcp', 'search', uniqueName('zkwv'));
        expect(none).toMatchObject({ code: 0 });
        expect(none.output).not.toContain(namespace);
      },
      SLOW_MS,
    );

    longVerifies(
      'contract:published-cli',
      'sets, lists and deletes secrets',
      async () => {
        const name = await createServer(app, owner, { namespace });
        expect(await cli.run('mcp', 'secrets', 'set', name, 'API_KEY', 'very secret')).toMatchObject({ code: 0 });
        const list = await cli.run('mcp', 'secrets', 'list', name);
        expect(list).toMatchObject({ code: 0, output: expect.stringContaining('API_KEY') });
        expect(list.output).not.toContain('very secret');
        expect(await cli.run('mcp', 'secrets', 'delete', name, 'API_KEY')).toMatchObject({ code: 0 });
        expect((await cli.run('mcp', 'secrets', 'list', name)).output).not.toContain('API_KEY');
        expect((await cli.run('mcp', 'secrets', 'delete', name, 'API_KEY')).code).toBe(1);
      },
      SLOW_MS,
    );

    longVerifies(
      'contract:published-cli',
      'stops before anything is sent when its key is wrong',
      async () => {
        const wrong = await openCli(program, { url: app.url, key: `${owner.key.slice(0, -4)}AAAA` });
        try {
          const name = `${namespace}/${uniqueName('never')}`;
          const run = await wrong.run('mcp', 'publish', everything.url, '-n', name);
          expect(run.code).not.toBe(0);
          expect((await app.as(owner).get(pathOf(name))).status).toBe(404);
          expect((await wrong.run('mcp', 'secrets', 'list', name)).output).toContain('401');
        } finally {
          await wrong.close();
        }
      },
      SLOW_MS,
    );
  });
}
