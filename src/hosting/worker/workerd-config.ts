export interface WorkerdPlan {
  /** Names of secrets; the n-th value is in the file `secret-n`. */
  secretNames: string[];
  /** Null for a program without sessions. */
  sessions: { uniqueKey: string; stateDir: string } | null;
  memoryMb: number;
}

export const FILES = {
  config: 'config.capnp',
  main: 'main.mjs',
  prelude: 'prelude.mjs',
  wrapper: 'wrapper.mjs',
  module: 'module.js',
  schema: 'schema.json',
  tail: 'tail.mjs',
  secret: (index: number) => `secret-${index}`,
} as const;

export const SOCKETS = { requests: 'in', health: 'up', sink: 'log', egress: 'out' } as const;

/** Compatibility date and flags for which the published tool builds. */
const COMPATIBILITY = 'compatibilityDate = "2026-01-07", compatibilityFlags = ["nodejs_compat"]';

const ALONE = 'compatibilityDate = "2026-01-07", globalOutbound = "nowhere"';

/**
 * Young generation of V8, in MB: a small one reduces the memory of an idle program (measured: 138 MB under load, 179 MB
 * without it).
 */
const SEMI_SPACE_MB = 4;

/**
 * Heap size of V8's first full collection. By default it is the whole heap, and each MB of garbage retains some 5 MB of
 * workerd's memory: a trivial program grew by 12 KB a request up to its limit; with this it stays at 150 MB.
 */
const FIRST_COLLECTION_MB = 8;

/**
 * Collects garbage on the thread that produced it, so that its time is charged to the request and limited with it. With
 * separate threads a neighbour's p95 grew to 2.3 times, and to 1.3 without them; the calls/s of other programs are
 * equal (measured, 2 cores).
 */
const COLLECTS_ITSELF = '"--single-threaded-gc"';

/** Returns workerd's configuration as Cap'n Proto text. Contains no user input except escaped names of secrets. */
export function workerdConfig(plan: WorkerdPlan): string {
  const secrets = plan.secretNames.map(
    (name, index) => `(name = ${quoteCapnp(name)}, text = embed "${FILES.secret(index)}")`,
  );
  const session = plan.sessions ? ['(name = "MCP_SESSION", durableObjectNamespace = "McpSession")'] : [];
  const unixAddress = (socket: string) => quoteCapnp(`unix:${socket}`);
  const sessions = plan.sessions
    ? `durableObjectNamespaces = [(className = "McpSession", uniqueKey = ${quoteCapnp(plan.sessions.uniqueKey)}, preventEviction = true, enableSql = true)],
      durableObjectStorage = (localDisk = "state"),`
    : '';
  const disk = plan.sessions
    ? `,\n    (name = "state", disk = (path = ${quoteCapnp(plan.sessions.stateDir)}, writable = true))`
    : '';
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  v8Flags = [${COLLECTS_ITSELF}, "--max-old-space-size=${plan.memoryMb}", "--max-semi-space-size=${SEMI_SPACE_MB}", "--initial-old-space-size=${FIRST_COLLECTION_MB}"],
  logging = (structuredLogging = true),
  services = [
    (name = "program", worker = (
      modules = [
        (name = "${FILES.main}", esModule = embed "${FILES.main}"),
        (name = "${FILES.prelude}", esModule = embed "${FILES.prelude}"),
        (name = "${FILES.wrapper}", esModule = embed "${FILES.wrapper}"),
        (name = "${FILES.schema}", json = embed "${FILES.schema}"),
        (name = "${FILES.module}", esModule = embed "${FILES.module}")],
      ${COMPATIBILITY},
      bindings = [${[...secrets, ...session].join(', ')}],
      ${sessions}
      globalOutbound = "egress",
      tails = ["tail"])),
    (name = "tail", worker = (
      modules = [(name = "${FILES.tail}", esModule = embed "${FILES.tail}")],
      bindings = [(name = "SINK", service = "sink")], ${ALONE})),
    (name = "health", worker = (
      modules = [(name = "health.mjs", esModule = "export default { fetch() { return new Response() } }")], ${ALONE})),
    (name = "sink", external = (address = ${unixAddress(SOCKETS.sink)}, http = ())),
    (name = "egress", external = (address = ${unixAddress(SOCKETS.egress)}, http = (style = proxy))),
    (name = "nowhere", network = (allow = []))${disk}],
  sockets = [
    (name = "requests", address = ${unixAddress(SOCKETS.requests)}, http = (), service = "program"),
    (name = "health", address = ${unixAddress(SOCKETS.health)}, http = (), service = "health")]);
`;
}

export const MAIN = `import './${FILES.prelude}';
import * as module from './${FILES.module}';
import { open } from './${FILES.wrapper}';
import schema from './${FILES.schema}';
const opened = open(module, schema);
export default opened.worker;
export const McpSession = opened.McpSession;
`;

/** Quotes a string. Characters other than plain letters become bytes, since the language has no \\u. */
export function quoteCapnp(text: string): string {
  const bytes = [...Buffer.from(text)].map((byte) => {
    const character = String.fromCharCode(byte);
    return /[A-Za-z0-9 _./:-]/.test(character) ? character : `\\x${byte.toString(16).padStart(2, '0')}`;
  });
  return `"${bytes.join('')}"`;
}
