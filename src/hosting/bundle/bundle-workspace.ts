import { mkdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Env } from '../../config/env.js';
import { DomainError } from '../../platform/errors/domain-error.js';
import type { EngineContext } from '../engine.js';
import type { EgressOptions, OpenEgress } from '../egress/egress-proxy.js';
import type { ProxyPlace } from '../egress/program-proxy.js';
import { ProgramStartError } from '../hosting.errors.js';
import type { Program } from '../hosting.types.js';
import { FOLDER_INSIDE, SCRATCH_INSIDE, type PivotRoot } from '../sandbox/pivot-root.js';
import type { Confinement, Launch, Sandbox } from '../sandbox/sandbox.js';
import { commandFor } from './bundle-command.js';
import { unpackBundle, type BundleManifest } from './bundle-files.js';
import { openBundleNetwork, proxyEnv, type BundleNetwork } from './bundle-network.js';

/** What Node itself takes as data: with so much beside its heap of 128 it ran code that kept 110 (measured). */
const NODE_RESERVED_MB = 64;

/** Sessions find the namespace of their network here: behind the standard streams. */
const NETWORK_INSIDE = '/proc/self/fd/3';

/** Opens the way out of a program; see `openEgress`. */
export type OpenEgressProxy = (place: ProxyPlace, options: EgressOptions) => Promise<OpenEgress>;

/** What the grounds of all bundles are made with. */
export interface BundleWorkspaceOptions {
  env: Env;
  sandbox: Sandbox;
  openWayOut: OpenEgressProxy;
}

/** A network that is joined, and what it takes to join. */
interface WayOut {
  network: BundleNetwork;
  egress: OpenEgress;
}

/** What all sessions of one bundle stand on: its unpacked files, the tree they see, and the network they share. */
export class BundleWorkspace {
  private constructor(
    private readonly setting: BundleWorkspaceOptions,
    private readonly program: Program,
    private readonly context: EngineContext,
    private readonly manifest: BundleManifest,
    private readonly folder: string,
    private readonly root: PivotRoot | null,
    private readonly wayOut: WayOut | null,
  ) {}

  /** @throws ProgramStartError when the bundle cannot be used; what the system says */
  static async lay(
    setting: BundleWorkspaceOptions,
    program: Program,
    context: EngineContext,
  ): Promise<BundleWorkspace> {
    const { env, sandbox } = setting;
    const folder = join(context.runDir, 'bundle');
    await mkdir(folder);
    const manifest = await unpacked(program.file, folder);
    const dir = join(context.runDir, 'root');
    await mkdir(dir);
    const scratchMb = env.runtimeBundleDiskMb;
    const root = await sandbox.ownRoot({ dir, folder, runtime: process.execPath, scratchMb });
    const isJoined = env.runtimeBundles === 'network' && (await sandbox.whyNoWayOut()) === null;
    const wayOut = isJoined ? await openWayOut(setting, program, context) : null;
    return new BundleWorkspace(setting, program, context, manifest, folder, root, wayOut);
  }

  /** What to start for a session whose caller sent this query. @throws HostedFailure */
  command(query: URLSearchParams): Promise<Launch> {
    const { manifest, program, root, wayOut } = this;
    const { limits, runDir } = this.context;
    const folder = root ? FOLDER_INSIDE : this.folder;
    const home = root ? SCRATCH_INSIDE : this.folder;
    const { command, args, env } = commandFor(manifest, folder, query, program.secrets);
    const isNode = basename(command) === 'node';
    const flags = isNode ? [`--max-old-space-size=${limits.memoryMb}`] : [];
    return this.launch(isNode ? process.execPath : command, [...flags, ...args], {
      ownerId: program.ref.ownerId,
      runDir,
      workDir: folder,
      env: { HOME: home, TMPDIR: home, ...(wayOut ? proxyEnv(wayOut.network.port) : {}), ...env },
      memoryMb: limits.memoryMb,
      reservedMb: NODE_RESERVED_MB,
      alone: { root },
    });
  }

  /** Closes the way out, with every connection that leads there. Never rejects. */
  async close(): Promise<void> {
    await this.wayOut?.egress.close();
    await this.wayOut?.network.close();
  }

  private async launch(file: string, args: string[], confinement: Confinement): Promise<Launch> {
    const { sandbox, env } = this.setting;
    if (this.wayOut) {
      const launch = await sandbox.command(file, args, { ...confinement, network: NETWORK_INSIDE });
      return { ...launch, fds: [this.wayOut.network.fd] };
    }
    return sandbox.command(file, args, { ...confinement, network: env.runtimeBundles === 'network' ? 'host' : 'own' });
  }
}

async function openWayOut(setting: BundleWorkspaceOptions, program: Program, context: EngineContext): Promise<WayOut> {
  const network = await openBundleNetwork();
  try {
    const egress = await setting.openWayOut(network.socket, {
      allow: program.egressAllow,
      told: (line) => context.onTrace({ ref: program.ref, invocationId: '', lines: [line], exceptions: [] }),
    });
    return { network, egress };
  } catch (error) {
    network.socket.close();
    await network.close();
    throw error;
  }
}

async function unpacked(file: string, folder: string): Promise<BundleManifest> {
  try {
    return await unpackBundle(file, folder);
  } catch (error) {
    if (error instanceof DomainError) throw new ProgramStartError(error.message, error);
    throw error;
  }
}
