import { readFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Agent, fetch as fetchBy } from 'undici';
import { loadEnv } from '../../../src/config/env.js';
import { BundleServer } from '../../../src/hosting/bundle/bundle-server.js';
import { ProgramBusyError } from '../../../src/hosting/hosting.errors.js';
import { Sandbox, type Launch } from '../../../src/hosting/sandbox/sandbox.js';
import { stdioServer } from '../upstream/stdio-server.js';

/** The sessions of one bundle, with what a test wants to see of them. */
export interface TestBundle {
  server: BundleServer;
  /** Places that are taken. */
  places(): number;
  /** Console lines and failures. */
  told: string[];
  fetch: typeof fetch;
  /** An official client in a session of its own. */
  connect(): Promise<Client>;
  /** Breaks every client's connection off. */
  vanish(): Promise<void>;
  close(): Promise<void>;
}

/** Serves {@link stdioServer} as a bundle is served, without a sandbox unless `hasWalls`. */
export async function startBundle({
  idleMs = 60_000,
  cpuMs = 2_000,
  logBytes = 65_536,
  placesMax = 50,
  hasWalls = false,
} = {}): Promise<TestBundle> {
  const folder = await mkdtemp(join(tmpdir(), 'slipway-bundle-'));
  const script = join(folder, 'server.mjs');
  await writeFile(script, stdioServer);
  const walled = hasWalls ? await walledCommand(folder) : null;
  const told: string[] = [];
  const clients: Client[] = [];
  let places = 0;
  const server = new BundleServer({
    command: (query) => {
      if (walled) return walled();
      const args = [script, ...query.getAll('argument')];
      return Promise.resolve({ file: process.execPath, args, options: { cwd: folder, env: {} } });
    },
    limits: { cpuMs, memoryMb: 128, logBytes },
    idleMs,
    place: () => {
      if (places >= placesMax) throw new ProgramBusyError('full');
      places += 1;
      return () => (places -= 1);
    },
    handlers: {
      log: () => undefined,
      redact: (text) => text,
      onLine: (_id, { message }) => told.push(message),
      onFailure: (_id, outcome, message) => told.push(`${outcome}: ${message}`),
    },
  });
  const socketPath = join(folder, 's');
  await server.listen(socketPath);
  const agent = new Agent({ connect: { socketPath } });
  const send = ((url: string | URL, init?: RequestInit) =>
    fetchBy(url, { ...(init as object), dispatcher: agent })) as unknown as typeof fetch;
  return {
    server,
    told,
    fetch: send,
    places: () => places,
    connect: async () => {
      const client = new Client({ name: 'test', version: '1' });
      clients.push(client);
      await client.connect(new StreamableHTTPClientTransport(new URL('http://bundle/mcp'), { fetch: send }));
      return client;
    },
    vanish: () => agent.destroy(),
    close: async () => {
      await Promise.all(clients.map((client) => client.close()));
      await agent.destroy();
      await server.close(true);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Command that starts each session with all isolation measures. */
async function walledCommand(folder: string): Promise<() => Promise<Launch>> {
  const sandbox = new Sandbox(loadEnv({ DATA_DIR: folder }));
  const dir = join(folder, 'root');
  await chmod(folder, 0o755);
  await mkdir(dir);
  const root = await sandbox.ownRoot({ dir, folders: { '': folder }, runtime: process.execPath, scratchMb: 16 });
  const confinement = { ownerId: randomUUID(), runDir: folder, workDir: '/bundle', memoryMb: 128, reservedMb: 64 };
  return () => sandbox.command(process.execPath, ['/bundle/server.mjs'], { ...confinement, alone: { root } });
}

/** The text a tool answers. */
export async function textOf(client: Client, name: string, args: Record<string, unknown> = {}): Promise<string> {
  const { content } = (await client.callTool({ name, arguments: args })) as { content: { text: string }[] };
  return content[0].text;
}

/** The account of its process. */
export async function uidOf(client: Client): Promise<number> {
  return (JSON.parse(await textOf(client, 'env')) as { uid: number }).uid;
}

export async function pidOf(client: Client): Promise<number> {
  return (JSON.parse(await textOf(client, 'env')) as { pid: number }).pid;
}

/** Zombies are not alive. */
export function isAlive(pid: number): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}
