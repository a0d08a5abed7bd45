import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { testAccount, testApp, uniqueName } from '../support/app.js';
import { externalServer } from '../support/releases/current-releases.js';
import { startEverything, type EverythingServer } from '../support/upstream/everything.js';
import { createNamespace } from '../support/factories.js';
import { newestCli, openCli, publishedClis, type PublishedCli, type Run } from '../support/releases/published-cli.js';
import { startUpstream, type Upstream } from '../support/upstream/upstream.js';
import { longVerifies, verifies } from '../support/verifies.js';

/** The tool starts anew for each command, and sends several requests. */
const SLOW_MS = 300_000;

const app = testApp({ REGISTRY_HOSTS: 'server.smithery.ai,*.run.tools' });
const owner = testAccount(app);
let namespace: string;
let everything: EverythingServer;
let upstream: Upstream;
let server: string;

beforeAll(async () => {
  [everything, upstream] = await Promise.all([startEverything(), startUpstream()]);
  namespace = await createNamespace(app, owner);
  server = (await externalServer(app, owner, everything.url)).name;
}, SLOW_MS);

/** The objects a run printed, one a line. */
function jsonOf({ output }: Run): Record<string, unknown>[] {
  return output
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

for (const program of Object.keys(publishedClis) as (keyof typeof publishedClis)[]) {
  describe(program, () => {
    let cli: PublishedCli;

    beforeAll(async () => {
      cli = await openCli(program, { url: app.url, key: owner.key });
      expect((await cli.run('namespace', 'use', namespace)).code).toBe(0);
    });
    afterAll(() => cli?.close(), SLOW_MS);

    /** Runs a command that must succeed. */
    const ok = async (...args: string[]): Promise<Run> => {
      const run = await cli.run(...args);
      expect({ args, ...run }).toMatchObject({ code: 0 });
      return run;
    };

    verifies(
      'contract:connect-cli',
      'lists and calls with a key that may do no more, and prints why it may not add',
      async () => {
        const id = uniqueName('cli');
        await ok('mcp', 'add', server, '--id', id);
        const { body } = await app
          .as(owner)
          .post('/accounts/me/api-keys', { name: 'app', scopes: [`call:${namespace}`] });
        const scoped = await openCli(program, { url: app.url, key: body.key as string });
        try {
          expect((await scoped.run('namespace', 'use', namespace)).code).toBe(0);
          expect((await scoped.run('tool', 'call', id, 'echo', '{"message":"Hello there"}')).output).toContain(
            'Hello there',
          );
          const refused = await scoped.run('mcp', 'add', server, '--id', uniqueName('cli'));
          expect([refused.code, refused.output]).toEqual([1, expect.stringContaining('lacks the scope')]);
        } finally {
          await scoped.close();
        }
      },
      SLOW_MS,
    );

    const managing = 'adds a registry server, finds it again, lists, shows, changes and removes it';
    const manages = async () => {
      const id = uniqueName('cli');
      await ok('mcp', 'add', server, '--id', id, '--name', 'By hand', '--metadata', '{"userId":"u-1","n":1}');
      const { body: made } = await app.as(owner).get(`/connect/${namespace}/${id}`);
      expect(made).toMatchObject({
        name: 'By hand',
        metadata: { userId: 'u-1', n: 1 },
        status: { state: 'connected' },
        mcpUrl: expect.stringContaining('/run/'),
      });
      const count = async () => {
        const { body } = await app.as(owner).get(`/connect/${namespace}`);
        return (body.connections as unknown[]).length;
      };
      const before = await count();
      expect((await ok('mcp', 'add', server)).output).toContain(id);
      expect(await count()).toBe(before);

      const [listed] = jsonOf(await ok('mcp', 'list', '--metadata', '{"userId":"u-1"}'));
      expect(JSON.stringify(listed)).toContain(id);
      expect((await ok('mcp', 'list', '--metadata', '{"userId":"u-2"}')).output).not.toContain(id);
      expect((await ok('mcp', 'get', id)).output).toContain('connected');

      await ok('mcp', 'update', id, '--name', 'Renamed', '--metadata', '{"userId":"u-3"}');
      expect((await app.as(owner).get(`/connect/${namespace}/${id}`)).body).toMatchObject({
        name: 'Renamed',
        metadata: { userId: 'u-3' },
      });
      await ok('mcp', 'remove', id);
      expect((await app.as(owner).get(`/connect/${namespace}/${id}`)).status).toBe(404);
    };
    if (program === newestCli) verifies('contract:connect-cli', managing, manages, SLOW_MS);
    else longVerifies('contract:connect-cli', managing, manages, SLOW_MS);

    longVerifies(
      'contract:connect-cli',
      'replaces a connection under its id when its target changes',
      async () => {
        const id = uniqueName('cli');
        const other = await externalServer(app, owner, upstream.url);
        await ok('mcp', 'add', server, '--id', id);
        await ok('mcp', 'add', other.name, '--id', id);
        const { body } = await app.as(owner).get(`/connect/${namespace}/${id}`);
        expect(body).toMatchObject({ serverInfo: { name: 'upstream' }, status: { state: 'connected' } });
        await ok('mcp', 'remove', id);
      },
      SLOW_MS,
    );

    longVerifies(
      'contract:connect-cli',
      'lists, finds, shows and calls tools, and reports a failing one',
      async () => {
        const id = uniqueName('cli');
        await ok('mcp', 'add', server, '--id', id);
        expect((await ok('tool', 'list', id)).output).toContain('echo');
        expect((await ok('tool', 'find', id, 'echo')).output).toContain('echo');
        expect((await ok('tool', 'get', id, 'echo')).output).toContain('message');
        expect((await ok('tool', 'call', id, 'echo', '{"message":"Hello there"}')).output).toContain('Hello there');
        const missing = await cli.run('tool', 'call', id, 'nothing', '{}');
        expect(missing.code).not.toBe(0);
        const wrong = await cli.run('tool', 'call', id, 'echo', '{}');
        expect(wrong.output).toMatch(/Invalid arguments|expected string|Required/i);
        expect((await cli.run('tool', 'list', 'no-such-connection')).output).toContain('not found');
        await ok('mcp', 'remove', id);
      },
      SLOW_MS,
    );
  });
}
