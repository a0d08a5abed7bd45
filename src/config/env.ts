import { availableParallelism, totalmem } from 'node:os';
import path from 'node:path';
import { accountLimitDefaults, parseAccountLimits, type AccountLimits } from './account-limits.js';
import type { WorkerPlace } from './workers.js';
import {
  optional,
  secret,
  secretText,
  setting,
  type SettingDoc,
  text,
  integer,
  oneOf,
  flag,
  listOf,
  url,
  storeUrl,
  listenAddress,
  publicUrl,
  proxyUrl,
  certificateFile,
  s3Place,
  encryptionKeys,
  bootstrapKey,
  issuerPattern,
  webOrigin,
  addressRanges,
  registryHosts,
  redirectHosts,
  metricsToken,
} from './setting.js';

export type Role = 'api' | 'worker' | 'host';
export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal';

const MB = 1024 * 1024;

/** Hosts that are this machine, IPv6 with or without brackets. */
export const LOOPBACK_HOST = /^(?:localhost|127(?:\.\d{1,3}){3}|\[?::1\]?)$/;

export const ISOLATION_MEASURES = [
  'own-user',
  'own-network',
  'memory-limit',
  'dies-with-service',
  'own-processes',
  'own-files',
] as const;
export type IsolationMeasure = (typeof ISOLATION_MEASURES)[number];

/** Every setting of a process, in the order of docs/reference/settings.md. */
const settings = {
  host: setting(
    'HOST',
    listenAddress,
    '127.0.0.1',
    'Address to listen on. `0.0.0.0` opens the service to the network.',
  ),
  port: setting('PORT', integer(0, 65_535), '3000', 'Port to listen on; 0 picks a free one.'),
  publicUrl: optional(
    'PUBLIC_URL',
    publicUrl,
    'URL of the service for its users. Default: `http://HOST:PORT`, or `http://localhost:PORT` with a warning where `HOST` is ' +
      '`0.0.0.0` or `::`.',
  ),
  appName: setting(
    'APP_NAME',
    text,
    'Slipway',
    'Name of your application or company, shown in the titles and content of browser pages.',
  ),
  corsOrigins: optional(
    'CORS_ORIGINS',
    listOf((value) => (value === '*' ? value : webOrigin(value))),
    'Origins of web pages whose scripts can use REST and MCP endpoints with an API key, comma-separated. `*`: all. ' +
      'Default: none, or those on loopback while `HOST` and `PUBLIC_URL` are local and `TRUST_PROXY` is not set.',
  ),
  advertiseUrl: optional(
    'ADVERTISE_URL',
    publicUrl,
    'URL at which other processes of the service reach this one, for calls that only it can serve. ' +
      'Default: `http://HOST:PORT`. Required if `HOST` is `0.0.0.0` and several processes run.',
  ),
  dataDir: setting(
    'DATA_DIR',
    (value) => path.resolve(value),
    '.data',
    'Folder of the embedded database, generated keys and uploaded files. Processes of one service share it, unless they have ' +
      '`DATABASE_URL` and `BLOB_URL`.',
  ),
  blobUrl: optional(
    'BLOB_URL',
    s3Place,
    'S3 bucket for uploaded files: `s3://bucket/prefix?region=eu-central-1`. Servers other than AWS also need ' +
      '`&endpoint=https://…`. Credentials: `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, or any other source of the ' +
      'AWS SDK, such as the file that `AWS_SHARED_CREDENTIALS_FILE` names. Default: a folder in `DATA_DIR`.',
  ),
  databaseUrl: secret(
    'DATABASE_URL',
    storeUrl('postgres:', 'postgresql:'),
    'Postgres 14 or newer. By socket: `postgres://role@/database?host=/folder`. Default: the embedded one.',
  ),
  ownDatabasePoolMax: optional(
    'DATABASE_POOL_MAX',
    integer(1, 500),
    'Database connections for queries, which the processes of `WORKERS` share. Default: 8 for each processor, but at most one ' +
      'for each 32 MB of memory of the container or machine. It is from 4 to 16, and at least 4 for each process.',
  ),
  redisUrl: secret(
    'REDIS_URL',
    storeUrl('redis:', 'rediss:'),
    'Redis 6.2 or newer for the queue (`noeviction`). Default: the queue is in Postgres.',
  ),
  queuePrefix: setting(
    'QUEUE_PREFIX',
    text,
    'slipway',
    'Prefix of queue keys and messages, for several services on one Redis.',
  ),
  roles: setting(
    'ROLES',
    listOf(oneOf<Role>('api', 'worker', 'host')),
    'api,worker,host',
    'Roles of this process: `api` serves requests, `worker` runs jobs, `host` runs hosted code.',
  ),
  workers: setting(
    'WORKERS',
    (value) => (value === 'auto' ? availableParallelism() : integer(1, 64)(value)),
    '1',
    'Number of processes that serve requests. `auto`: one for each processor. The first has all `ROLES`, and the others have `api`. They share ' +
      'the port, the memory and the limits: see [scale](../explanation/scale.md#all-cores-of-one-machine).',
  ),
  publicReads: setting(
    'PUBLIC_READS',
    flag,
    'false',
    '`true`: servers, skills, icons and downloads can be read without a key. A wrong key is still rejected.',
  ),
  ownDefaultVisibility: optional(
    'DEFAULT_VISIBILITY',
    oneOf('public', 'restricted', 'private'),
    '`visibility` of new servers created without one. `private`: only the owner and grantees find and call them. ' +
      '`restricted`: everybody finds them, and only the owner and grantees call them. Default: `public` while `HOST` and `PUBLIC_URL` are local ' +
      'and `TRUST_PROXY` is not set, `restricted` otherwise.',
  ),
  registryHosts: setting(
    'REGISTRY_HOSTS',
    registryHosts,
    'none',
    'Hosts, comma-separated. An `mcpUrl` of a connection on one of them names a server of this registry: ' +
      '`https://HOST/acme/weather` by its name, and the first label of `*.HOST` by its slug. [Clients](../guides/clients.md) ' +
      'has the values for published command line tools.',
  ),
  modules: optional(
    'SLIPWAY_MODULES',
    listOf((value) => path.resolve(value)),
    'Folders of npm packages that add modules to the service, comma-separated. Default: none.',
  ),
  modulesCheck: setting(
    'SLIPWAY_MODULES_CHECK',
    oneOf('on', 'off'),
    'on',
    '`off`: also load modules written for another version of `@slipway/module`.',
  ),
  migrate: setting('MIGRATE', oneOf('auto', 'off'), 'auto', '`off`: do not migrate at start; use `npm run migrate`.'),
  bootstrapApiKey: secret('BOOTSTRAP_API_KEY', bootstrapKey, "The operator's first key, instead of a generated one."),
  encryptionKeys: secret(
    'ENCRYPTION_KEYS',
    encryptionKeys,
    'Keys that encrypt stored secrets: `id:base64,…`, 32 bytes each. The first one encrypts new values. ' +
      'Required with `DATABASE_URL`, generated into `DATA_DIR` otherwise.',
  ),
  egressAllow: optional(
    'EGRESS_ALLOW',
    text,
    'Private addresses to which Slipway can connect: CIDRs, hosts, or `loopback`, comma-separated. ' +
      'Default: `loopback` while `HOST` and `PUBLIC_URL` are loopback addresses and `TRUST_PROXY` is not set, none ' +
      'otherwise. On loopback, the ports of the database, of Redis and of `ADVERTISE_URL` are always closed; the port of the ' +
      'API is not.',
  ),
  hostingEgressAllow: setting(
    'HOSTING_EGRESS_ALLOW',
    text,
    '',
    'Private addresses that hosted code can reach: CIDRs, hosts, or `loopback`, comma-separated. A server reaches one only if ' +
      'its `egressAllow`, which anyone who can publish can set, names it with its port. Always closed: the ports of this service, ' +
      'its database, Redis, S3 and OpenTelemetry collector, and 169.254.0.0/16. Default: none.',
  ),
  egressProxy: secret(
    'EGRESS_PROXY',
    proxyUrl,
    'HTTP proxy, `http://user:password@host:port`, for every request to MCP servers, authorization servers, S3, language ' +
      'models and Git, and of hosted code. It must allow CONNECT. Addresses of `EGRESS_ALLOW` are reached directly: see ' +
      '[networks](../guides/networks.md#a-proxy-to-the-internet). Default: none.',
  ),
  trustProxy: optional(
    'TRUST_PROXY',
    addressRanges,
    'Addresses of reverse proxies whose `X-Forwarded-For` names the client: CIDRs, comma-separated. Limits for one address ' +
      'do not apply to the proxy itself. Default: none, and the header is ignored.',
  ),
  drainMs: setting(
    'DRAIN_MS',
    integer(0, 600_000),
    '0',
    'How long a stopping process still serves while `/ready` returns 503, so that load balancers use other processes. ' +
      'The container image sets 5000.',
  ),
  httpConnectionsPerAddressMax: setting(
    'HTTP_CONNECTIONS_PER_ADDRESS_MAX',
    integer(1, 1_000_000),
    '2000',
    'Connections of one address, or of one /64 network of IPv6.',
  ),
  ownAccountLimits: optional(
    'ACCOUNT_LIMITS',
    parseAccountLimits,
    'Limits of every account that differ from the defaults, such as `namespaces=20,requestsPerMinute=6000`: see ' +
      '[operate](../guides/operate.md#limits-of-accounts).',
  ),
  authFailuresMax: setting(
    'AUTH_FAILURES_MAX',
    integer(1, 1_000_000_000),
    '1000',
    'Wrong keys and passwords of one address in 15 minutes. Further ones return 429, with a `Retry-After` that grows.',
  ),
  upstreamConnectTimeoutMs: setting(
    'UPSTREAM_CONNECT_TIMEOUT_MS',
    integer(100, 54_000),
    '8000',
    'Time limit for the first contact with an MCP server and for opening a session. Servers that start at their first request might need more.',
  ),
  mcpCallTimeoutMs: setting(
    'MCP_CALL_TIMEOUT_MS',
    integer(100, 3_600_000),
    '300000',
    'Time without a message of the MCP server after which a call at an MCP endpoint fails. Each message of the call restarts it, ' +
      'up to an hour in total. `callTimeoutMs` of a connection replaces it.',
  ),
  upstreamAnswerMb: setting(
    'UPSTREAM_ANSWER_MB',
    integer(1, 256),
    '16',
    'Maximum size of one response or event of an MCP server.',
  ),
  releaseKeepDays: setting(
    'RELEASE_KEEP_DAYS',
    integer(1, 36_500),
    '90',
    'Age at which [old releases](../guides/operate.md#data-that-is-deleted) are deleted with their files.',
  ),
  releaseRescanHours: setting(
    'RELEASE_RESCAN_HOURS',
    integer(0, 720),
    '24',
    'Interval of scans of the current releases of servers that run elsewhere. 0: only on request.',
  ),
  oauthPkceUnannounced: optional(
    'OAUTH_PKCE_UNANNOUNCED',
    listOf(issuerPattern),
    'Issuers that support PKCE without announcing it, with `*` for one label of the host or any path. Slipway rejects other ' +
      'issuers that do not announce PKCE. ' +
      'Default: those of Entra ID and Cognito.',
  ),
  oauth: setting(
    'OAUTH',
    oneOf('auto', 'on', 'off'),
    'auto',
    'Login of MCP clients by URL: the authorization server at `/authorize`, `/token` and `/register`. `auto`: on with ' +
      'an https `PUBLIC_URL`, and while only this machine reaches the service. `on`: also with http, behind a proxy that adds ' +
      'https. It is always off if `PUBLIC_URL` has a path.',
  ),
  oauthTokenHours: setting(
    'OAUTH_TOKEN_HOURS',
    integer(1, 168),
    '24',
    'Lifetime of access tokens, which clients then refresh. Revoked tokens stop working within 5 s.',
  ),
  oauthRedirectHosts: optional(
    'OAUTH_REDIRECT_HOSTS',
    redirectHosts,
    'Redirect targets of MCP clients that log in by URL, comma-separated: hosts such as `claude.ai`, `loopback` for programs ' +
      "on the user's machine, schemes of apps such as `cursor:`. A client with another redirect address is rejected. " +
      'Default: any host by https, loopback, schemes with a dot (`com.example.app:`), and those of known editors and MCP clients.',
  ),
  setupReturnOrigins: optional(
    'SETUP_RETURN_ORIGINS',
    listOf(webOrigin),
    'Origins of apps to which setup pages redirect, comma-separated. The app adds `&returnUrl=` to the link. Default: none.',
  ),
  connectionRecheckHours: setting(
    'CONNECTION_RECHECK_HOURS',
    integer(0, 720),
    '6',
    'Time without a call after which a connection is checked. 0: never. Broken connections are always checked within an hour.',
  ),
  simulatorUrl: optional(
    'SIMULATOR_URL',
    url('http:', 'https:'),
    'Language model that answers for simulated connections: an OpenAI-compatible base such as `https://host/v1`, or ' +
      "Anthropic's. Default: none, and results are generated from schemas.",
  ),
  simulatorModel: optional('SIMULATOR_MODEL', text, 'Name of that model. Required with `SIMULATOR_URL`.'),
  simulatorApiKey: secret('SIMULATOR_API_KEY', text, 'API key of the model.'),
  simulatorDailyCallsMax: setting(
    'SIMULATOR_DAILY_CALLS_MAX',
    integer(1, 10_000_000),
    '1000',
    'Requests to the model per day, a quarter of them from one namespace. Then results are generated from schemas.',
  ),
  runtimeCpuMs: setting('RUNTIME_CPU_MS', integer(50, 300_000), '5000', 'CPU time of one request to hosted code.'),
  runtimeWallMs: setting(
    'RUNTIME_WALL_MS',
    integer(100, 3_600_000),
    '3600000',
    'Time limit of one response of hosted code. The limits of its callers, such as MCP_CALL_TIMEOUT_MS, also apply.',
  ),
  runtimeMemoryMb: setting(
    'RUNTIME_MEMORY_MB',
    integer(32, 65_536),
    '128',
    'Maximum memory of hosted code, for each release.',
  ),
  ownRuntimeLiveMax: optional(
    'RUNTIME_LIVE_MAX',
    integer(1, 10_000),
    'Hosted programs that run concurrently in one process. Slipway stops the longest idle one to start another, and while ' +
      'programs and service use more than 85 % of the memory. Default: one for each 64 MB of memory of the container or ' +
      'machine, from 4 to 100. A program takes about 30 MB.',
  ),
  logRetentionDays: setting(
    'LOG_RETENTION_DAYS',
    integer(1, 3_650),
    '14',
    'Days for which the logs of servers and connections are stored.',
  ),
  logRetentionGb: setting(
    'LOG_RETENTION_GB',
    integer(1, 100_000),
    '10',
    'Total size of these logs above which their oldest days are deleted. The current day is never deleted.',
  ),
  runtimeBundles: setting(
    'RUNTIME_BUNDLES',
    oneOf('off', 'isolated', 'network'),
    'off',
    'Whether MCPB bundles run, in one process for each session. `isolated`: without network. `network`: with access through a ' +
      'proxy to public addresses, or only to hosts that their owner lists.',
  ),
  hostingIsolation: setting(
    'HOSTING_ISOLATION',
    oneOf('auto', 'container', 'isolated'),
    'auto',
    'Isolation of hosted code. `isolated`: a separate user and network, for which the service must be root or have the right to ' +
      'create namespaces. `container`: the sandbox of workerd with the user and network of the service. `auto`: `isolated` ' +
      'if the host permits it, otherwise `container`. Bundles need `isolated`.',
  ),
  metricsToken: secret(
    'METRICS_TOKEN',
    metricsToken,
    'Bearer token for `/metrics`, at least 16 characters. `open`: no token. Default: `/metrics` is off.',
  ),
  logLevel: setting(
    'LOG_LEVEL',
    oneOf<LogLevel>('trace', 'debug', 'info', 'warn', 'error', 'fatal'),
    'info',
    'Lowest level that is logged. Requests are logged at `debug`: see `ACCESS_LOG`.',
  ),
  accessLog: setting('ACCESS_LOG', flag, 'false', '`true`: every request is logged at `info`, with its account.'),
  logFormat: optional('LOG_FORMAT', oneOf('pretty', 'json'), 'Default: `pretty` in a terminal, `json` otherwise.'),
};

/** Variables of Node.js and OpenTelemetry, whose libraries read them. Slipway only checks them. */
const variables = {
  extraCaFile: optional('NODE_EXTRA_CA_CERTS', certificateFile, ''),
  otelEndpoint: optional('OTEL_EXPORTER_OTLP_ENDPOINT', url('http:', 'https:'), ''),
  otelTracesEndpoint: optional('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', url('http:', 'https:'), ''),
  otelLogsEndpoint: optional('OTEL_EXPORTER_OTLP_LOGS_ENDPOINT', url('http:', 'https:'), ''),
  otelTracesExporter: setting('OTEL_TRACES_EXPORTER', oneOf('otlp', 'none'), 'otlp', ''),
  otelLogsExporter: setting('OTEL_LOGS_EXPORTER', oneOf('otlp', 'none'), 'otlp', ''),
};

const readers = { ...settings, ...variables };

type Values = { readonly [Name in keyof typeof readers]: ReturnType<(typeof readers)[Name]['parse']> };

/** File in `DATA_DIR` with the time of the last backup of the embedded database. */
export const LAST_BACKUP = 'last-backup';

export class Env extends (class {} as new () => Values) {
  /** Folder of the embedded Postgres; null with another one. */
  readonly embeddedFolder: string | null = null;
  /** True if the encryption keys are a file in `DATA_DIR`, next to the database. */
  readonly storesKeysWithData: boolean = false;
  /** Place of this process among those of `WORKERS`; null where there is one, and in their supervisor. */
  readonly worker: WorkerPlace | null = null;
  /** The variables that were read, for the settings of modules. */
  readonly source: NodeJS.ProcessEnv = {};
  private limits?: AccountLimits;
  private memory?: number;

  /** Returns a copy with some settings filled in. */
  copyWith(
    changes: Partial<
      Pick<
        Env,
        | 'databaseUrl'
        | 'embeddedFolder'
        | 'encryptionKeys'
        | 'migrate'
        | 'port'
        | 'publicUrl'
        | 'roles'
        | 'storesKeysWithData'
        | 'worker'
      >
    >,
  ): Env {
    return Object.assign(new Env(), this, changes);
  }

  /** Base of the service's URLs, without a trailing slash. */
  get baseUrl(): string {
    return this.publicUrl ?? (this.listensEverywhere ? `http://localhost:${this.port}` : this.ownUrl);
  }

  /** Path of `PUBLIC_URL`, which a proxy removes; empty without one. */
  get pathPrefix(): string {
    return new URL(this.baseUrl).pathname.replace(/\/$/, '');
  }

  /** True when `HOST` names all addresses of the machine, so that no URL can contain it. */
  get listensEverywhere(): boolean {
    return this.host === '0.0.0.0' || this.host === '::';
  }

  /** URL by which other processes reach this one; null when it listens on all addresses and `ADVERTISE_URL` is not set. */
  get internalUrl(): string | null {
    const url = this.advertiseUrl ?? (this.listensEverywhere ? null : this.ownUrl);
    if (this.worker === null) return url;
    // Each worker has its own port on the same host: all workers share the public one.
    return `http://${url === null ? '127.0.0.1' : new URL(url).hostname}:${this.worker.internalPort}`;
  }

  /** Address on which a worker listens for other processes: only workers of this machine reach it without `ADVERTISE_URL`. */
  get internalHost(): string {
    return this.listensEverywhere && this.advertiseUrl === null ? '127.0.0.1' : this.host;
  }

  /**
   * Limits of an account without its own limits. Its daily logs are a quarter of the total, its programs three
   * quarters, so that one account cannot occupy a process.
   */
  get accountLimits(): AccountLimits {
    // Cached, since every request reads it and the container's memory limit is in a file.
    return (this.limits ??= {
      ...accountLimitDefaults,
      logBytesPerDay: Math.floor(this.logBytesOfDay / 4),
      livePrograms: Math.max(4, Math.floor((this.runtimeLiveMax * 3) / 4)),
      ...this.ownAccountLimits,
    });
  }

  /**
   * Bytes of logs per day of all accounts together, up to which the default share of an account is not applied. 0 when
   * `ACCOUNT_LIMITS` sets `logBytesPerDay`, which always applies.
   */
  get sharedLogBytesPerDay(): number {
    return this.ownAccountLimits?.logBytesPerDay === undefined ? this.logBytesOfDay : 0;
  }

  private get logBytesOfDay(): number {
    return Math.floor((this.logRetentionGb * 1024 * MB) / this.logRetentionDays);
  }

  get sendsTraces(): boolean {
    return this.otelTracesExporter !== 'none' && (this.otelTracesEndpoint ?? this.otelEndpoint) !== null;
  }

  get sendsLogs(): boolean {
    return this.otelLogsExporter !== 'none' && (this.otelLogsEndpoint ?? this.otelEndpoint) !== null;
  }

  get databasePoolMax(): number {
    const fitting = Math.min(8 * availableParallelism(), Math.floor(this.memoryBytes / (32 * MB)));
    if (this.ownDatabasePoolMax !== null) return Math.ceil(this.ownDatabasePoolMax / this.workers);
    return Math.max(4, Math.ceil(Math.min(16, fitting) / this.workers));
  }

  get runtimeLiveMax(): number {
    return this.ownRuntimeLiveMax ?? Math.min(100, Math.max(4, Math.floor(this.memoryBytes / (64 * MB))));
  }

  private get memoryBytes(): number {
    return (this.memory ??= memoryBytes());
  }

  private get ownUrl(): string {
    return `http://${this.host.includes(':') ? `[${this.host}]` : this.host}:${this.port}`;
  }

  /** The `visibility` of new servers whose creator does not send one. */
  get defaultVisibility(): 'public' | 'restricted' | 'private' {
    return this.ownDefaultVisibility ?? (this.isLocalOnly ? 'public' : 'restricted');
  }

  get isLocalOnly(): boolean {
    const isLocal = LOOPBACK_HOST.test(this.host) && LOOPBACK_HOST.test(new URL(this.baseUrl).hostname);
    return isLocal && this.trustProxy === null;
  }
}

/** Returns the memory of the container, or of the machine. A container without a limit reports a number far beyond the machine's. */
export function memoryBytes(): number {
  return Math.min(process.constrainedMemory() || Infinity, totalmem());
}

/** A reason not to start that the operator can correct. `message` is for the operator. */
export class StartError extends Error {}

/** Lists the settings in the order of docs/reference/settings.md. */
export function settingDocs(): SettingDoc[] {
  return Object.values(settings).map(({ name, fallback, doc, isSecret }) => ({ name, fallback, doc, isSecret }));
}

/**
 * Reads and checks every setting together; an empty value means unset.
 *
 * @param checks validate settings whose format other code defines: each throws an Error whose message is for the
 * operator
 * @throws StartError with all problems together. Values are not repeated: some are secrets.
 */
export function loadEnv(source: NodeJS.ProcessEnv = process.env, checks: ((env: Env) => void)[] = []): Env {
  const env = Object.assign(new Env(), { source });
  const faults: string[] = [];
  for (const [property, { name, parse, fallback, isSecret }] of Object.entries(readers)) {
    try {
      const value = (isSecret ? secretText(source, name) : source[name]?.trim()) || fallback;
      // Shells remove quotes, files of `--env-file` and containers keep them.
      if (/^(["']).*\1$/s.test(value ?? '')) throw new Error('must not be in quotes');
      Object.assign(env, { [property]: value === null ? null : parse(value) });
    } catch (error) {
      faults.push(`${name} ${(error as Error).message}.`);
    }
  }
  const isGiven = (name: string) => Boolean(source[name]?.trim() || source[`${name}_FILE`]?.trim());
  if (isGiven('DATABASE_URL') && !isGiven('ENCRYPTION_KEYS')) {
    faults.push('ENCRYPTION_KEYS must be set with DATABASE_URL: make one with `echo "k1:$(openssl rand -base64 32)"`.');
  }
  if (env.workers > 1 && !env.roles.includes('api')) {
    faults.push('WORKERS must be 1 without the role `api`: it is for processes that serve requests.');
  }
  if (source.SIMULATOR_URL?.trim() && !source.SIMULATOR_MODEL?.trim()) {
    faults.push('SIMULATOR_MODEL must be set with SIMULATOR_URL: the name of the model to ask.');
  }
  for (const check of checks) {
    try {
      check(env);
    } catch (error) {
      faults.push((error as Error).message);
    }
  }
  if (faults.length > 0) throw new StartError(faults.join('\n'));
  return env;
}
