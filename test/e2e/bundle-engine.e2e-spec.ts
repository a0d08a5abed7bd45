import { chmod, mkdtemp, mkdir, rm, writeFile } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { fetch as fetchBy } from 'undici';
import { loadEnv } from '../../src/config/env.js';
import { BundleEngine } from '../../src/hosting/bundle/bundle-engine.js';
import type { Instance } from '../../src/hosting/engine.js';
import { HostingUnavailableError, ProgramStartError } from '../../src/hosting/hosting.errors.js';
import type { Trace } from '../../src/hosting/hosting.types.js';
import { Sandbox } from '../../src/hosting/sandbox/sandbox.js';
import { bundleOf } from '../support/bundles.js';
import { isAlive, pidOf, textOf } from '../support/bundle-server.js';
import { stdioServer } from '../support/stdio-server.js';
import { until } from '../support/until.js';
import { verifies } from '../support/verifies.js';
import { listen, shut } from '../support/upstream-net.js';

/** What a hostile bundle tries, beside the tools of an ordinary one. */
const HOSTILE = `
import { readFileSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
const outcome = (work) => { try { return 'done: ' + String(work()).slice(0, 40); } catch (error) { return error.code ?? error.message; } };
Object.assign(globalThis.tools, {
  attack: async ({ secretFile, port }) => ({ content: [{ type: 'text', text: JSON.stringify({
    read: outcome(() => readFileSync(secretFile)),
    shadow: outcome(() => readFileSync('/etc/shadow')),
    write: outcome(() => writeFileSync('/etc/slipway', 'x')),
    parent: outcome(() => readFileSync('/proc/' + process.ppid + '/environ')),
    network: await new Promise((resolve) => get({ port, host: '127.0.0.1' }, () => resolve('answered')).on('error', (error) => resolve(error.code))),
  }) }] }),
  hoard: () => { const kept = []; for (;;) kept.push(Buffer.alloc(16 * 1024 * 1024, 7)); },
});
`;

let folder: string;
let instance: Instance | undefined;
let traces: Trace[];
const clients: Client[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'slipway-bundles-'));
  await chmod(folder, 0o711);
  traces = [];
});

afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()));
  await instance?.stop(100);
  instance = undefined;
  await rm(folder, { recursive: true, force: true });
});

async function start(
  {
    changes = {},
    code = stdioServer,
    secrets = {},
  }: { changes?: object; code?: string; secrets?: Record<string, string> },
  settings: NodeJS.ProcessEnv = { RUNTIME_BUNDLES: 'isolated' },
): Promise<Instance> {
  const env = loadEnv({ DATA_DIR: folder, ...settings });
  const file = join(folder, 'bundle.mcpb');
  await writeFile(
    file,
    await bundleOf(changes, { 'server/index.js': 'import "./main.mjs";', 'server/main.mjs': code }),
  );
  const runDir = join(folder, `run-${randomUUID()}`);
  await mkdir(runDir, { mode: 0o700 });
  const ref = { kind: 'release', id: randomUUID(), ownerId: randomUUID(), engine: 'bundle', isStateful: true } as const;
  const limits = { cpuMs: 2_000, wallMs: 30_000, memoryMb: 128, responseBytes: 1e6, logBytes: 1e5, concurrency: 8 };
  const context = { limits, runDir, stateDir: join(folder, 'state'), onTrace: (trace: Trace) => traces.push(trace) };
  const program = { ref, file, secrets, configSchema: null, egressAllow: null };
  return (instance = await new BundleEngine(env, new Sandbox(env)).start(program, context));
}

async function connect(query = 'key=given'): Promise<Client> {
  const dispatcher = instance?.dispatcher;
  const send = ((url: string | URL, init?: RequestInit) =>
    fetchBy(url, { ...(init as object), dispatcher })) as unknown as typeof fetch;
  const client = new Client({ name: 'test', version: '1' });
  clients.push(client);
  await client.connect(new StreamableHTTPClientTransport(new URL(`http://bundle/?${query}`), { fetch: send }));
  return client;
}

interface Seen {
  env: Record<string, string>;
  argv: string[];
  uid: number;
}

const seen = async (client: Client) => JSON.parse(await textOf(client, 'env')) as Seen;

describe('a bundle that is run here', () => {
  verifies(
    'bundle:manifest',
    'gets what its manifest asks for: of the caller, of its secrets, or its default',
    async () => {
      const server = {
        type: 'node',
        entry_point: 'server/index.js',
        mcp_config: {
          command: 'node',
          args: [
            '${__dirname}/server/index.js',
            '--key=${user_config.key}',
            '${user_config.places}',
            '${user_config.none}',
          ],
          env: { PLACE: '${user_config.place}', UNITS: '${user_config.units}' },
        },
      };
      const user_config = {
        key: { type: 'string', title: 'Key', required: true },
        place: { type: 'string', title: 'Place' },
        units: { type: 'string', title: 'Units', default: 'metric' },
        places: { type: 'string', title: 'Places', multiple: true },
        none: { type: 'string', title: 'None' },
      };
      await start({ changes: { server, user_config }, secrets: { place: 'Oslo', TOKEN: 's3cret' } });
      const { env, argv } = await seen(await connect('key=one&places=a&places=b'));
      expect(argv).toEqual(['--key=one', 'a', 'b']);
      expect(env).toMatchObject({ PLACE: 'Oslo', UNITS: 'metric', TOKEN: 's3cret' });
      expect((await seen(await connect('key=two'))).argv).toEqual(['--key=two']);
    },
  );

  verifies('bundle:manifest', 'hears what lacks, and no process is started', async () => {
    await start({});
    await expect(connect('')).rejects.toThrow(/The server wants .*key/);
  });

  verifies(
    'bundle:walls',
    'sees nothing of this service: no environment, no files of its account, no network',
    async () => {
      const secretFile = join(folder, 'secret');
      await writeFile(secretFile, 'key', { mode: 0o600 });
      const local: Server = createServer((_request, response) => response.end('hello'));
      const port = await listen(local);
      process.env.SLIPWAY_TEST_SECRET = 'ours';
      try {
        await start({ code: stdioServer + HOSTILE });
        const client = await connect();
        const { env, uid } = await seen(client);
        expect(JSON.stringify(env)).not.toContain('ours');
        if (process.getuid?.() === 0) expect(uid).not.toBe(0);
        const tried = JSON.parse(await textOf(client, 'attack', { secretFile, port })) as Record<string, string>;
        expect(tried.network).toMatch(/^E/);
        for (const what of ['read', 'shadow', 'write', 'parent']) expect(tried[what]).toMatch(/^E(ACCES|PERM|ROFS)/);
      } finally {
        delete process.env.SLIPWAY_TEST_SECRET;
        await shut(local);
      }
    },
  );

  verifies('bundle:limits', 'may not hoard memory', async () => {
    await start({ code: stdioServer + HOSTILE });
    const client = await connect();
    await expect(textOf(client, 'hoard')).rejects.toThrow(/ended before it answered/);
    expect(await textOf(await connect(), 'echo', { message: 'again' })).toBe('again');
  });

  it('is heard: what it writes to its error stream belongs to the call', async () => {
    await start({});
    await textOf(await connect(), 'echo', { message: 'hi' });
    const lines = () => traces.flatMap((trace) => trace.lines.map(({ level, message }) => `${level} ${message}`));
    await until(() => lines().includes('log called echo'), 'the line is told');
  });

  verifies('bundle:session', 'ends with all its sessions', async () => {
    const running = await start({});
    const pids = [await pidOf(await connect()), await pidOf(await connect())];
    await running.stop(1_000);
    expect((await running.exited).reason).toBe('stopped');
    expect(pids.filter(isAlive)).toEqual([]);
  });

  verifies(
    'bundle:off',
    'is refused while bundles are off, and when its manifest says nothing of how it starts',
    async () => {
      await expect(start({}, {})).rejects.toThrow(HostingUnavailableError);
      await expect(start({ changes: { server: {} } })).rejects.toThrow(ProgramStartError);
    },
  );
});
