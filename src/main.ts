import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { Env, loadEnv, StartError } from './config/env.js';
import { tuningOf } from './config/tuning.js';
import { useWorkers, workerPlace } from './config/workers.js';
import { operatorLink, startInfrastructure } from './infrastructure.js';
import { SchemaVersionError } from './platform/database/migrations.js';
import { databaseFault } from './platform/checks/connect-checks.js';
import { requireSurroundings } from './platform/checks/surroundings.js';
import { egressChecks } from './platform/egress/egress.module.js';
import { loadModules } from './own-modules.js';
import { collectWhenIdle } from './platform/idle-collection.js';
import { openFilesFault } from './platform/open-files.js';
import { chooseQueueBackend } from './platform/queue/queue-backend.js';
import { createPino, logFormatOf, PinoLoggerService, processFields } from './platform/telemetry/logger.js';
import { resourceOf } from './platform/telemetry/otel-resource.js';
import { tracing, useTracing } from './platform/telemetry/tracing.js';
import { acceptMore } from './platform/http/accept.js';
import { Draining } from './platform/telemetry/draining.js';
import type { StopOrder } from './supervisor.js';

interface FreePort {
  port: number;
  /** Closes the socket that reserves a port picked here. Listen on the port right after. */
  release: () => Promise<void>;
}

/**
 * Requires a free port before anything is started. Port 0 selects one now, since published addresses contain it, and reserves it until
 * `release`, so that no other program takes it during the start.
 */
async function requireFreePort({ host, port }: Env): Promise<FreePort> {
  return new Promise((resolve, reject) => {
    const probe = createServer((socket) => socket.destroy());
    const close = () => new Promise<void>((closed) => probe.close(() => closed()));
    probe.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') {
        reject(new StartError(`Port ${port} on ${host} is in use: stop what listens there, or set PORT.`));
      } else reject(new StartError(`Cannot listen on ${host}:${port} (${error.code}): check HOST and PORT.`));
    });
    probe.listen(port, host, () => {
      const { port: picked } = probe.address() as AddressInfo;
      if (port === 0) resolve({ port: picked, release: close });
      else close().then(() => resolve({ port, release: () => Promise.resolve() }), reject);
    });
  });
}

/**
 * Bypasses the log, which would blank the link and the key. A stored log never contains the key: `slipway keys` creates
 * another one.
 */
async function printWelcome(env: Env, firstKey: string | null): Promise<void> {
  const signInUrl = firstKey !== null && env.roles.includes('api') ? await operatorLink(env) : undefined;
  if (logFormatOf(env) === 'json') {
    const head = { level: 'info', time: new Date().toISOString(), ...processFields(env) };
    process.stdout.write(`${JSON.stringify({ ...head, msg: 'Slipway listens', url: env.baseUrl, signInUrl })}\n`);
    return;
  }
  const lines = [`Slipway listens on  ${env.baseUrl}`, `Try it at           ${env.baseUrl}/docs`];
  if (firstKey !== null) {
    lines.push(`Operator API key    ${firstKey}`, '                    Shown this once. Another: npm run keys');
  } else lines.push('Another API key     npm run keys');
  if (signInUrl !== undefined) {
    lines.push(`Sign in             ${signInUrl}`);
    lines.push('                    Works once, for 15 minutes. Another: npm run keys -- --invite operator');
  }
  process.stdout.write(`\n${lines.map((line) => `  ${line}\n`).join('')}\n`);
}

/** Time limit of a stop, longer than any part needs after `DRAIN_MS`. Work that still runs then is killed. */
const STOP_MS_MAX = 55_000;

let stopParts: (signal: string) => Promise<void> = () => Promise.resolve();
let stopMsMax = STOP_MS_MAX;
let isStopping = false;

/** Stops the service in order; a second signal of any kind stops it immediately. */
function stopProcess(signal: string): void {
  if (isStopping) process.exit(1);
  isStopping = true;
  setTimeout(() => process.exit(1), stopMsMax).unref();
  stopParts(signal).then(
    () => process.exit(0),
    (error: unknown) => {
      process.stderr.write(`Stopping failed: ${String(error)}\n`);
      process.exit(1);
    },
  );
}

async function start(): Promise<void> {
  const base = loadEnv(undefined, egressChecks);
  const worker = workerPlace(process.argv);
  const isSupervisor = worker === null && base.workers > 1;
  const ownEnv = worker && worker.number > 1 ? base.copyWith({ worker, roles: ['api'] }) : base.copyWith({ worker });
  if (worker) useWorkers(ownEnv.workers);
  const orders = worker && new Orders();
  // Process managers reload by SIGHUP, and start the service again.
  if (!worker) for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, stopProcess);
  const tuning = tuningOf(process.argv);
  const pino = createPino(ownEnv);
  if (process.argv.includes('--tuning')) pino.warn('started with --tuning, which is for tests: remove it');
  const logger = new PinoLoggerService(pino);
  // A bug that nothing caught must be seen, in the log's form and without credentials, before the process exits.
  process.on('uncaughtException', (error, origin) => {
    pino.fatal({ err: error }, `ended by an ${origin}`);
    process.exit(1);
  });
  // Allocates objects of calls in V8's young generation. Many objects survive the start, and V8 would then allocate
  // their kind in the old generation: each call left 8 KB until the next full collection, and a young collection took 5
  // ms instead of 1.
  setFlagsFromString('--no-allocation-site-pretenuring');
  const { port, release } = worker
    ? { port: worker.port, release: () => Promise.resolve() }
    : await requireFreePort(ownEnv);
  const settings = ownEnv.copyWith({ port });
  if (!worker) for (const warning of await requireSurroundings(settings)) pino.warn(warning);
  // Before the hooks that resolve external modules, which every later import passes through.
  if (settings.modules || settings.source.OIDC_ISSUER) {
    await import('./app.setup.js');
    const { readModuleSettings } = await import('./extensions/settings/module-settings.js');
    const read = readModuleSettings(settings, await loadModules(settings));
    if (!worker) for (const warning of read.flatMap(({ warnings }) => warnings)) pino.warn(warning);
  }
  if (settings.sendsTraces && !isSupervisor) {
    const { OpenTelemetry } = await import('./platform/telemetry/open-telemetry.js');
    useTracing(new OpenTelemetry(await resourceOf(settings.roles)));
  }
  const {
    env,
    firstKey,
    stop: stopDatabase,
  } = await startInfrastructure(settings, {
    log: (line) => pino.info({ context: 'postgres' }, line),
    warn: (line) => pino.warn({ context: 'postgres' }, line),
    onStarting: (stopDatabase) => {
      stopParts = (signal) => {
        pino.info(`${signal}: the start is broken off`);
        return stopDatabase();
      };
    },
  });
  stopMsMax = env.drainMs + STOP_MS_MAX;
  try {
    if (isSupervisor) {
      const { Supervisor } = await import('./supervisor.js');
      const supervisor = await Supervisor.create(env, pino);
      stopParts = async (signal) => {
        await supervisor.stop(signal);
        await stopDatabase();
        pino.flush();
      };
      // A terminal that is closed also sends this signal.
      if (!process.stdout.isTTY) process.off('SIGHUP', stopProcess).on('SIGHUP', () => supervisor.reload());
      await release();
      if (await supervisor.start()) {
        await printWelcome(env, firstKey);
        collectWhenIdle();
      } else if (!supervisor.isStopping) {
        // The worker that did not start has already reported why.
        await supervisor.stop('a failed start');
        await stopDatabase();
        process.exit(1);
      }
      return;
    }
    chooseQueueBackend(env);
    // Imported here because it takes most of the start: a refused start does not wait for it.
    const { createApp } = await import('./app.setup.js');
    const internal = worker ? createServer({ allowHalfOpen: true, noDelay: true }) : undefined;
    const app = await createApp(env, { logger, internal }, tuning);
    const stopService = async (signal: string) => {
      const startedAt = performance.now();
      pino.info(`${signal}: finishing requests; jobs go on in another process or after the next start`);
      app.get(Draining).begin();
      await wait(env.drainMs);
      await app.close();
      await tracing()?.stop();
      await stopDatabase();
      pino.info(`stopped in ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
      pino.flush();
    };
    orders?.setServer(app.getHttpServer());
    await release();
    if (worker && internal) {
      await app.init();
      internal.on('connection', (socket) => app.getHttpServer().emit('connection', socket));
      internal.listen({ host: env.internalHost, port: worker.internalPort, exclusive: true });
      await once(internal, 'listening');
    }
    await app.listen(env.port, env.host);
    stopParts = stopService;
    void acceptMore(app.getHttpServer());
    // On a personal machine nobody opens that many connections.
    const fault = env.isLocalOnly ? null : openFilesFault(tuning);
    if (fault !== null) pino.warn(fault);
    pino.info(`new servers are ${env.defaultVisibility} unless their creator says otherwise (DEFAULT_VISIBILITY)`);
    if (worker) process.send?.('ready');
    else await printWelcome(env, firstKey);
    collectWhenIdle();
  } catch (error) {
    await stopDatabase();
    throw error;
  }
}

/**
 * Receives the orders of the supervisor in a worker. Signals are ignored, since terminals and service managers send them to all processes: the supervisor passes them on.
 */
class Orders {
  private server: { _handle?: { close(): void } | null } = {};

  constructor() {
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => undefined);
    process.on('message', ({ stop: order, isReplaced }: Partial<StopOrder>) => {
      if (order === undefined) return;
      // From now on the supervisor hands new connections to the others, including those in transit. Open connections
      // remain.
      if (isReplaced) this.server._handle?.close();
      stopProcess(order);
    });
    process.send?.('obeys');
  }

  setServer(server: object): void {
    this.server = server;
  }
}

start().catch((error: unknown) => {
  if (isStopping) return;
  const expected = [StartError, SchemaVersionError];
  const { message, stack } = error as Error;
  const isExpected = expected.some((kind) => error instanceof kind);
  const reason = isExpected ? message : (databaseFault(error) ?? stack ?? String(error));
  const msg = 'Slipway did not start.';
  // eslint-disable-next-line no-restricted-properties -- wrong settings give no Env.
  const isJson = process.env.LOG_FORMAT?.trim() === 'json';
  const line = { level: 'fatal', time: new Date().toISOString(), msg, reason };
  process.stderr.write(isJson ? `${JSON.stringify(line)}\n` : `${msg}\n${reason}\n`);
  process.exit(1);
});
