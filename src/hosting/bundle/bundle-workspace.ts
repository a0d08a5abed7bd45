import { mkdir, open, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Env } from '../../config/env.js';
import type { Tuning } from '../../config/tuning.js';
import { DomainError } from '../../platform/errors/domain-error.js';
import type { EngineContext } from '../engine.js';
import type { ProgramProxy, ProgramProxyOptions, ProxyPlace } from '../egress/program-proxy.js';
import { ProgramStartError } from '../hosting.errors.js';
import type { Program } from '../hosting.types.js';
import { FOLDER_INSIDE, SCRATCH_INSIDE, type PivotRoot } from '../sandbox/pivot-root.js';
import type { Launch, Sandbox } from '../sandbox/sandbox.js';
import { commandFor, unpackBundle, type BundleManifest } from './unpack-bundle.js';
import { spawn } from 'node:child_process';
import { Server } from 'node:net';
import { LOOPBACK_UP, TOOL_MS_MAX, TOOLS_PATH } from '../sandbox/isolation-checks.js';

/** Data segment in addition to the heap: with this much Node 20 ran code that used 110 MB of its 128 (measured). */
const RESERVED_MB = 64;

/** Address space that V8 reserves at start since Node 24 and never fills, in MB: `VmData` is 575 MB instead of 48. */
const V8_RESERVED_MB = Number(process.versions.node.split('.', 1)[0]) >= 24 ? 527 : 0;

/** Path of the network namespace inside a session: the first descriptor after the standard streams. */
const NETWORK_INSIDE = '/proc/self/fd/3';

const LISTEN = `const server = require('node:net').createServer();
process.on('disconnect', () => process.exit());
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }, server));`;

/** Copy of the operator's certificate authorities (`NODE_EXTRA_CA_CERTS`) in the folder of a bundle. */
const CA_FILE = '.slipway-ca.pem';

/** A network namespace that contains only one socket, on which this process listens. */
interface BundleNetwork {
  fd: number;
  port: number;
  socket: Server;
  /** Closes the descriptor; the namespace ends with its last process. The promise never rejects. */
  close(): Promise<void>;
}

export type OpenEgressProxy = (place: ProxyPlace, options: ProgramProxyOptions) => Promise<ProgramProxy>;

interface BundleWorkspaceOptions {
  env: Env;
  tuning: Tuning;
  sandbox: Sandbox;
  openProxy: OpenEgressProxy;
}

interface JoinedNetwork {
  network: BundleNetwork;
  egress: ProgramProxy;
}

interface BundleWorkspaceParts {
  options: BundleWorkspaceOptions;
  program: Program;
  context: EngineContext;
  manifest: BundleManifest;
  folder: string;
  root: PivotRoot | null;
  joined: JoinedNetwork | null;
}

export class BundleWorkspace {
  private constructor(private readonly parts: BundleWorkspaceParts) {}

  /** @throws ProgramStartError when the bundle is unusable; system errors */
  static async create(
    options: BundleWorkspaceOptions,
    program: Program,
    context: EngineContext,
  ): Promise<BundleWorkspace> {
    const { env, tuning, sandbox } = options;
    const folder = join(context.runDir, 'bundle');
    await mkdir(folder);
    const manifest = await unpackBundle(program.file, folder).catch((error: unknown) => {
      throw error instanceof DomainError ? new ProgramStartError(error.message, error) : error;
    });
    if (env.extraCaFile !== null)
      await writeFile(join(folder, CA_FILE), await readFile(env.extraCaFile), { mode: 0o644 });
    const dir = join(context.runDir, 'root');
    await mkdir(dir);
    const scratchMb = tuning.runtimeBundleDiskMb;
    const root = await sandbox.ownRoot({ dir, folders: { '': folder }, runtime: process.execPath, scratchMb });
    const joined = env.runtimeBundles === 'network' ? await openProxy(options, program, context) : null;
    return new BundleWorkspace({ options, program, context, manifest, folder, root, joined });
  }

  /** @throws HostedFailure */
  async command(query: URLSearchParams): Promise<Launch> {
    const { options, manifest, program, root, joined } = this.parts;
    const { limits, runDir } = this.parts.context;
    const folder = root ? FOLDER_INSIDE : this.parts.folder;
    const home = root ? SCRATCH_INSIDE : this.parts.folder;
    const { command, args, env } = commandFor(manifest, { folder, home }, query, program.secrets);
    const isNode = basename(command) === 'node';
    const flags = isNode ? [`--max-old-space-size=${limits.memoryMb}`] : [];
    const launch = await options.sandbox.command(isNode ? process.execPath : command, [...flags, ...args], {
      ...(joined && { network: NETWORK_INSIDE }),
      ownerId: program.ref.ownerId,
      runDir,
      workDir: folder,
      env: {
        ...{ HOME: home, TMPDIR: home },
        ...(options.env.extraCaFile === null ? {} : { NODE_EXTRA_CA_CERTS: join(folder, CA_FILE) }),
        ...(joined ? proxyEnv(joined.network.port) : {}),
        ...env,
      },
      memoryMb: limits.memoryMb,
      reservedMb: RESERVED_MB + (isNode ? V8_RESERVED_MB : 0),
      alone: { root },
    });
    return joined ? { ...launch, fds: [joined.network.fd] } : launch;
  }

  /** Closes the egress proxy with all its connections. Never rejects. */
  async close(): Promise<void> {
    const { joined } = this.parts;
    await joined?.egress.close();
    await joined?.network.close();
  }
}

async function openProxy(
  options: BundleWorkspaceOptions,
  program: Program,
  context: EngineContext,
): Promise<JoinedNetwork> {
  const network = await openBundleNetwork();
  try {
    const egress = await options.openProxy(network.socket, {
      allow: program.egressAllow,
      onRefused: (line) => context.onTrace({ ref: program.ref, invocationId: '', lines: [line], exceptions: [] }),
    });
    return { network, egress };
  } catch (error) {
    network.socket.close();
    await network.close();
    throw error;
  }
}

/**
 * Opens the socket of the proxy with a short-lived process, since only a process inside the namespace can open a socket there.
 *
 * @throws Error with the output of that process
 */
async function openBundleNetwork(): Promise<BundleNetwork> {
  const inside = ['sh', '-c', `${LOOPBACK_UP} && exec "$@"`, 'sh', process.execPath, '--eval', LISTEN];
  const child = spawn('unshare', ['--net', '--', ...inside], {
    env: { PATH: TOOLS_PATH },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    timeout: TOOL_MS_MAX,
    killSignal: 'SIGKILL',
  });
  let words = '';
  child.stderr?.on('error', () => undefined).on('data', (chunk: Buffer) => (words += chunk.toString('utf8')));
  try {
    const { port, socket } = await new Promise<Pick<BundleNetwork, 'port' | 'socket'>>((resolve, reject) => {
      const failed = () => reject(new Error(`a network could not be made: ${words}`));
      child.on('error', reject).once('close', failed);
      child.once('message', (message, handle) => {
        if (handle instanceof Server) resolve({ port: (message as { port: number }).port, socket: handle });
        else failed();
      });
    });
    // The process has sent the socket, so it is alive and inside the namespace.
    const namespace = await open(`/proc/${child.pid}/ns/net`).catch((error: unknown) => {
      socket.close();
      throw error;
    });
    return { fd: namespace.fd, port, socket, close: () => namespace.close().catch(() => undefined) };
  } finally {
    child.kill('SIGKILL');
  }
}

/** Returns the variables of the proxy, which loopback addresses bypass. */
function proxyEnv(port: number): Record<string, string> {
  const proxy = `http://127.0.0.1:${port}`;
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy'];
  const direct = 'localhost,127.0.0.1';
  return {
    ...Object.fromEntries(names.map((name) => [name, proxy])),
    NO_PROXY: direct,
    no_proxy: direct,
    NODE_USE_ENV_PROXY: '1',
  };
}
