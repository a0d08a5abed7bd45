/**
 * The processes of one start (`WORKERS`), by `node:cluster`. The supervisor starts the database, listens on the port of
 * the service, hands each new connection to the next worker, and exits after all workers.
 *
 * A worker that exits is replaced after 0 to 30 s, by one with the same number and address. `reload` replaces them in
 * turn, without an interruption: the new one serves, on another internal port, before the old one stops accepting. If
 * the new one does not start, the old ones continue.
 *
 * The supervisor adds up what workers count together: requests and failures (`RateCounter`), and `/metrics`. Signals of
 * a terminal or a service manager reach all processes, so a worker ignores them. A worker exits immediately if its
 * supervisor dies.
 */
import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { getHeapStatistics } from 'node:v8';
import type { Logger as Pino } from 'pino';
import { RateLimiterClusterMaster } from 'rate-limiter-flexible';
import { memoryBytes, type Env } from './config/env.js';
import type { WorkerPlace } from './config/workers.js';
import { addUpRequests } from './platform/limits/worker-counts.js';
import { addUpMetrics } from './platform/telemetry/worker-metrics.js';

/** `signal` is for the log. `isReplaced`: another worker takes over, so this one accepts nothing more. */
export interface StopOrder {
  stop: string;
  isReplaced: boolean;
}

/** Pauses before each new start of a worker that exited by itself; the last one is repeated. */
const RESTART_PAUSES_MS = [0, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000];

/** A worker that ran for this long is started again after the first pause. */
const STABLE_MS = 60_000;

const MB = 1024 * 1024;

/** Heap of a worker, whatever its share of the memory is: the start alone takes a quarter. */
const HEAP_MB_MIN = 256;

/** The workers of one number, one after another. */
interface Slot {
  number: number;
  /** A worker has one internal port and its successor of a reload the other. */
  ports: number[];
  /** Null while no worker serves. */
  worker: Worker | null;
}

export class Supervisor {
  isStopping = false;
  private readonly stopping = new AbortController();
  private reloading = Promise.resolve();

  /** Creates a supervisor, whose workers know all internal ports from the start. */
  static async create(env: Env, logger: Pino): Promise<Supervisor> {
    const probes = Array.from({ length: 2 * env.workers }, () => createServer().listen(0, env.internalHost));
    await Promise.all(probes.map((probe) => once(probe, 'listening')));
    const ports = probes.map((probe) => (probe.address() as AddressInfo).port);
    await Promise.all(probes.map((probe) => new Promise((closed) => probe.close(closed))));
    const slots = Array.from({ length: env.workers }, (_, i) => ({
      number: i + 1,
      ports: ports.slice(2 * i, 2 * i + 2),
      worker: null,
    }));
    return new Supervisor(env, logger, slots);
  }

  private constructor(
    private readonly env: Env,
    private readonly logger: Pino,
    private readonly slots: readonly Slot[],
  ) {
    new RateLimiterClusterMaster();
    addUpRequests();
    addUpMetrics(() => slots.flatMap(({ worker }) => (worker?.isConnected() ? [worker] : [])));
  }

  /**
   * Starts the workers. The first one starts alone: its messages explain why a start fails. Another one that does not start is started
   * again.
   * @returns false when the first one did not start, or the service is to stop
   */
  async start(): Promise<boolean> {
    const [first, ...rest] = this.slots;
    if (!(await this.begin(first)) || this.isStopping) return false;
    const beginOrRepeat = async (slot: Slot) => (await this.begin(slot)) || void this.restart(slot, 1);
    await Promise.all(rest.map(beginOrRepeat));
    return true;
  }

  reload(): void {
    this.reloading = this.reloading.then(async () => {
      this.logger.info('SIGHUP: the workers are replaced');
      for (const slot of this.slots) {
        const { worker: old } = slot;
        if (this.isStopping || old === null) continue;
        slot.ports.reverse();
        if (!(await this.begin(slot))) {
          slot.ports.reverse();
          return void this.logger.error(`worker ${slot.number} could not be replaced: the others go on`);
        }
        old.send({ stop: 'SIGHUP', isReplaced: true } satisfies StopOrder);
        if (!old.isDead()) await once(old, 'exit');
      }
      this.logger.info('the workers are replaced');
    });
  }

  /** Resolves when the last worker has exited. */
  async stop(signal: string): Promise<void> {
    this.isStopping = true;
    this.stopping.abort();
    await Promise.all(
      Object.values(cluster.workers ?? {}).map(async (worker) => {
        if (!worker || worker.isDead()) return;
        const exit = once(worker, 'exit');
        const order: StopOrder = { stop: signal, isReplaced: false };
        worker.send(order);
        // An order that a worker gets before it says `obeys` is lost: Node gives it to `cluster.worker`, which has no
        // listener.
        worker.on('message', (message) => void (message === 'obeys' && worker.send(order)));
        await exit;
      }),
    );
  }

  /** Resolves when the worker serves, or with false when it exited before. */
  private begin(slot: Slot, tries = 0): Promise<boolean> {
    const internalPorts = this.slots.flatMap(({ ports }) => ports);
    const place: WorkerPlace = { number: slot.number, port: this.env.port, internalPort: slot.ports[0], internalPorts };
    // Node's own limit is half of the memory for each process.
    const heapMb = Math.max(HEAP_MB_MIN, memoryBytes() / this.env.workers / 2 / MB);
    const ownHeapMb = getHeapStatistics().heap_size_limit / MB;
    cluster.setupPrimary({
      exec: fileURLToPath(new URL('main.js', import.meta.url)),
      args: [...process.argv.slice(2), '--worker', JSON.stringify(place)],
      execArgv: [...process.execArgv, `--max-old-space-size=${Math.floor(Math.min(heapMb, ownHeapMb))}`],
    });
    const startedAt = performance.now();
    const worker = cluster.fork();
    worker.on('error', () => undefined);
    // A connection is handed over when the worker confirms it. Node would keep that of a killed worker open.
    let handed: { close?(): void } | undefined;
    const send = worker.process.send.bind(worker.process) as (...args: unknown[]) => boolean;
    worker.process.send = (message: unknown, handle?: unknown, ...rest: unknown[]) => {
      if (handle) handed = handle;
      return send(message, handle, ...rest);
    };
    worker.once('exit', () => handed?.close?.());
    return new Promise((resolve) => {
      worker.on('message', (message) => {
        if (message !== 'ready') return;
        slot.worker = worker;
        resolve(true);
      });
      worker.once('exit', (code, signal) => {
        resolve(false);
        if (slot.worker !== worker) return;
        slot.worker = null;
        if (this.isStopping) return;
        this.logger.warn(`worker ${slot.number} ended (${signal ?? `exit code ${code}`}); it is started again`);
        void this.restart(slot, performance.now() - startedAt < STABLE_MS ? tries : 0);
      });
    });
  }

  private async restart(slot: Slot, tries: number): Promise<void> {
    for (; !this.isStopping; tries += 1) {
      const pauseMs = RESTART_PAUSES_MS[tries] ?? RESTART_PAUSES_MS.at(-1);
      await wait(pauseMs, undefined, this.stopping).catch(() => undefined);
      // A reload might have replaced it.
      if (this.isStopping || slot.worker !== null || (await this.begin(slot, tries + 1))) return;
    }
  }
}
