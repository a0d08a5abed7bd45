import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { testAccount, testApp, uniqueName } from '../support/app.js';
import { eventsOf, mcp, toolCall } from '../support/mcp/calls.js';
import { startEverything } from '../support/upstream/everything.js';
import { createNamespace } from '../support/factories.js';
import { openCli, type PublishedCli, type RunningCli } from '../support/releases/published-cli.js';
import { pair, untilState } from '../support/mcp/uplink-client.js';
import { until } from '../support/until.js';
import { longVerifies, verifies } from '../support/verifies.js';

/** The tool starts anew for each command, and starts a local server itself. */
const SLOW_MS = 300_000;

const manifest = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/package.json');
const everything = [process.execPath, join(dirname(manifest), 'dist', 'index.js'), 'stdio'];

const app = testApp();
const owner = testAccount(app);
let namespace: string;
let cli: PublishedCli;

beforeAll(async () => {
  namespace = await createNamespace(app, owner);
  cli = await openCli('@smithery/cli 4.11.1', { url: app.url, key: owner.key });
  expect((await cli.run('namespace', 'use', namespace)).code).toBe(0);
}, SLOW_MS);

afterAll(async () => {
  await cli?.close();
}, SLOW_MS);

/** The published client with a local server behind it, paired. */
async function start(...before: string[]): Promise<{ id: string; path: string; run: RunningCli }> {
  const id = uniqueName('local');
  const path = `/connect/${namespace}/${id}`;
  const run = cli.start('mcp', 'add', '--id', id, ...before, '--', ...everything);
  await connected(path, run);
  return { id, path, run };
}

async function connected(path: string, run: RunningCli): Promise<void> {
  await untilState(app, owner, path, 'connected').catch((error: Error) => {
    throw new Error(`${error.message}\n${run.output()}`);
  });
}

/** The local servers that a run has started. */
async function serversOf(run: RunningCli): Promise<number[]> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid=,args=']);
  return stdout
    .split('\n')
    .map((line) => /^ *(\d+) +(\d+) (.*)$/.exec(line) ?? [])
    .filter(([, , parent, args]) => Number(parent) === run.pid && args?.includes('server-everything'))
    .map(([, pid]) => Number(pid));
}

describe('the published client', () => {
  verifies(
    'uplink:cli:pairs',
    'pairs a local server, whose tools are listed, found, shown and called over REST, MCP and by itself',
    async () => {
      const { id, path, run } = await start();
      const { body } = await app.as(owner).get(path);
      expect(body).toMatchObject({ transport: 'uplink', mcpUrl: null, status: { state: 'connected' } });
      expect(body.serverInfo.name).toMatch(/everything/);
      const { body: listed } = await app.as(owner).get(`${path}/.tools`);
      expect(listed.tools.map(({ name }: { name: string }) => name)).toContain('echo');
      const called = await app.as(owner).post(`${path}/.tools/echo`, { message: 'Hello' });
      expect(called.body.content).toEqual([{ type: 'text', text: 'Echo: Hello' }]);
      const args = { duration: 0.2, steps: 2 };
      const slow = await mcp(
        app,
        owner,
        path,
        toolCall(1, 'trigger-long-running-operation', args, { progressToken: 't' }),
      );
      const messages = eventsOf(slow.text).map((event) => JSON.parse(event));
      expect(messages.map(({ params }) => params?.progress)).toEqual([1, 2, undefined]);
      expect(messages.at(-1)).toMatchObject({ id: 1, result: { content: [{ type: 'text' }] } });

      expect((await cli.run('mcp', 'list')).output).toContain(id);
      for (const [command, said] of [
        [['tool', 'list', id], 'echo'],
        [['tool', 'find', id, 'echo'], 'echo'],
        [['tool', 'get', id, 'echo'], 'message'],
        [['tool', 'call', id, 'echo', '{"message":"Hello there"}'], 'Echo: Hello there'],
      ] as const) {
        const { code, output } = await cli.run(...command);
        expect({ code, output }).toEqual({ code: 0, output: expect.stringContaining(said) });
      }
      run.kill('SIGINT');
      await run.ended;
    },
    SLOW_MS,
  );

  longVerifies(
    'uplink:cli:pairs',
    'pairs a local server over HTTP',
    async () => {
      const server = await startEverything();
      const id = uniqueName('local');
      const path = `/connect/${namespace}/${id}`;
      const run = cli.start('mcp', 'add', server.url, '--id', id);
      try {
        await connected(path, run);
        const called = await app.as(owner).post(`${path}/.tools/echo`, { message: 'Hello' });
        expect(called.body.content).toEqual([{ type: 'text', text: 'Echo: Hello' }]);
      } finally {
        run.kill('SIGTERM');
        await run.ended;
        await server.close();
      }
    },
    SLOW_MS,
  );

  longVerifies(
    'uplink:cli:interrupt',
    'deletes its connection when it is interrupted',
    async () => {
      for (const signal of ['SIGINT', 'SIGTERM'] as const) {
        const { path, run } = await start();
        run.kill(signal);
        await run.ended;
        expect(run.output()).not.toMatch(/error|failed/i);
        await until(async () => (await app.as(owner).get(path)).status === 404, 'the connection is gone');
      }
    },
    SLOW_MS,
  );

  longVerifies(
    'uplink:cli:server-dies',
    'ends with its local server, and the connection waits for the next one',
    async () => {
      const { path, run } = await start();
      const [server] = await until(async () => {
        const servers = await serversOf(run);
        return servers.length > 0 && servers;
      }, 'the local server runs');
      process.kill(server, 'SIGKILL');
      expect(await run.ended).not.toBe(0);
      await untilState(app, owner, path, 'disconnected');
      expect((await app.as(owner).post(`${path}/.tools/echo`, {})).status).toBe(503);
      (await pair(app, owner, path)).socket.terminate();
    },
    SLOW_MS,
  );

  longVerifies(
    ['uplink:cli:replaced', 'uplink:pair:conflict'],
    'reports a conflict, replaces with --force, and stops when it is replaced',
    async () => {
      const { id, path, run } = await start();
      const refused = await cli.run('mcp', 'add', '--id', id, '--', ...everything);
      expect(refused).toMatchObject({
        code: 1,
        output: expect.stringMatching(/Failed to pair uplink \(409 Conflict\)/),
      });
      const next = cli.start('mcp', 'add', '--id', id, '--force', '--', ...everything);
      expect(await run.ended).toBe(1);
      expect(run.output()).toContain('Uplink replaced by another session.');
      await connected(path, next);
      next.kill('SIGTERM');
      await next.ended;
    },
    SLOW_MS,
  );

  longVerifies(
    'uplink:cli:replaced',
    'reconnects when its socket breaks, and ends when its connection is deleted',
    async () => {
      const { path, run } = await start();
      const tunnelOf = async () => {
        const [row] = await app.database.query(
          'SELECT t.tunnel FROM uplink_tunnels t JOIN connections c ON c.id = t.connection_id WHERE c.connection_id = $1',
          [path.split('/')[3]],
        );
        return row?.tunnel as string | undefined;
      };
      const before = await tunnelOf();
      // As if the process had been thought dead: the tunnel is nobody's, and its holder finds that out.
      await app.database.query('DELETE FROM uplink_tunnels WHERE tunnel = $1', [before]);
      await until(async () => ![undefined, before].includes(await tunnelOf()), 'it is paired anew');
      await connected(path, run);
      const called = await app.as(owner).post(`${path}/.tools/echo`, { message: 'again' });
      expect(called.body.content).toEqual([{ type: 'text', text: 'Echo: again' }]);
      expect((await app.as(owner).delete(path)).status).toBe(200);
      expect(await run.ended).toBe(1);
      expect(run.output()).toMatch(/404/);
    },
    SLOW_MS,
  );
});
