import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Pool } from 'undici';
import { connectorOf } from '../../platform/egress/early-close.js';
import { Env } from '../../config/env.js';
import { Tuning } from '../../config/tuning.js';
import { openEgress } from '../egress/egress-proxy.js';
import { internalRoutes } from '../egress/internal-routes.js';
import { Engine, type EngineContext, type Instance, type InstanceExit, type ProgramLog } from '../engine.js';
import { HostingUnavailableError, ProgramBusyError } from '../hosting.errors.js';
import type { Program, Trace } from '../hosting.types.js';
import { Sandbox } from '../sandbox/sandbox.js';
import { BundleWorkspace, type OpenEgressProxy } from './bundle-workspace.js';
import { BundleServer } from './bundle-server.js';

/** Divisor of the share of one program: a quarter of all sessions, so that its callers cannot lock out others. */
const SHARE = 4;

/**
 * Runs MCPB bundles, which are made for a personal computer: one child process per session, in the strongest sandbox.
 */
export class BundleEngine extends Engine {
  readonly name = 'bundle';
  sessions = 0;
  private readonly openProxy: OpenEgressProxy;

  constructor(
    private readonly env: Env,
    private readonly tuning: Tuning,
    private readonly sandbox: Sandbox,
    openProxy?: OpenEgressProxy,
  ) {
    super();
    const internal = internalRoutes(env);
    this.openProxy = openProxy ?? ((place, options) => openEgress(place, options, env.egressProxy, internal));
  }

  async start(program: Program, context: EngineContext): Promise<Instance> {
    const reason = await this.whyNot();
    if (reason !== null) throw new HostingUnavailableError(reason);
    const { env, tuning, sandbox, openProxy } = this;
    const workspace = await BundleWorkspace.create({ env, tuning, sandbox, openProxy }, program, context);
    const report = (trace: Pick<Trace, 'invocationId' | 'lines' | 'exceptions' | 'outcome'>) =>
      context.onTrace({ ref: program.ref, ...trace });
    let ownSessions = 0;
    const server = new BundleServer({
      command: (query) => workspace.command(query),
      limits: context.limits,
      idleMs: tuning.runtimeIdleMs,
      place: () => {
        const { runtimeBundleSessionsMax: max } = tuning;
        if (this.sessions >= max || ownSessions >= Math.max(1, Math.floor(max / SHARE))) {
          throw new ProgramBusyError('As many sessions of bundles are open as may be: try again when one has ended.');
        }
        ownSessions += 1;
        this.sessions += 1;
        return () => {
          ownSessions -= 1;
          this.sessions -= 1;
        };
      },
      handlers: {
        log: context.log,
        redact: context.redact,
        onLine: (invocationId, line) => report({ invocationId, lines: [line], exceptions: [] }),
        onFailure: (invocationId, outcome, message) => {
          const exceptions = [{ at: Date.now(), name: 'ServerEnded', message }];
          report({ invocationId, outcome, lines: [], exceptions });
        },
      },
    });
    const socket = join(context.runDir, 's');
    try {
      await server.listen(socket);
    } catch (error) {
      await server.close(true);
      await workspace.close();
      throw error;
    }
    return new BundleInstance(server, socket, workspace, context.log);
  }

  override async whyNot(): Promise<string | null> {
    const whyNot = await this.sandbox.whyNoBundles();
    if (whyNot !== null || this.env.runtimeBundles !== 'network') return whyNot;
    const why = await this.sandbox.whyNoProxyNetwork();
    return why && `A bundle's network cannot be given a way out on this host (${why}): set RUNTIME_BUNDLES=isolated.`;
  }
}

class BundleInstance implements Instance {
  readonly pid = null;
  readonly dispatcher: Pool;
  readonly exited: Promise<InstanceExit>;
  private leave: (exit: InstanceExit) => void = () => undefined;

  constructor(
    private readonly server: BundleServer,
    private readonly socket: string,
    private readonly workspace: BundleWorkspace,
    private readonly log: ProgramLog,
  ) {
    // No limit of connections, since streams stay open; the runtime limits requests.
    this.dispatcher = new Pool('http://bundle', {
      connect: connectorOf({ socketPath: socket }),
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    this.exited = new Promise((resolve) => (this.leave = resolve));
  }

  /** Resolves in any case: a bundle has no event loop of its own; each session is watched separately. */
  ping(): Promise<void> {
    return Promise.resolve();
  }

  async stop(graceMs: number): Promise<void> {
    const late = setTimeout(() => void this.server.close(true), graceMs);
    try {
      await this.server.close(false);
    } finally {
      clearTimeout(late);
    }
    await this.cleanUp();
  }

  kill(): void {
    void this.server
      .close(true)
      .then(() => this.cleanUp())
      .catch((error: unknown) => this.log('error', { msg: 'a bundle could not be stopped', err: error }));
  }

  private async cleanUp(): Promise<void> {
    try {
      await this.dispatcher.destroy();
      await this.workspace.close();
      await rm(this.socket, { force: true });
    } finally {
      this.leave({ reason: 'stopped', detail: '' });
    }
  }
}
