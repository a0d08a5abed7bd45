/**
 * Limits and times of a process that an operator does not set. A class injects `Tuning` as it injects `Env`.
 *
 * Tests shorten leases and lower limits: in their own process by the second object of `startApp`, in others by
 * `--tuning <json>`, about which the service warns at its start. `slipway doctor --tuning` prints the values.
 *
 * Limits of all connections and of memory are the share of this process among those of `WORKERS`.
 */
import { memoryBytes, StartError } from './env.js';
import { shareOf } from './workers.js';

const [KB, MB] = [1024, 1024 * 1024];

/** Limits and times of one process. */
export class Tuning {
  /** Connections one process accepts. */
  httpConnectionsMax = shareOf(20_000);
  /** ms for a request and its body to arrive. */
  httpRequestTimeoutMs = 300_000;
  /** Bytes of request bodies in memory, from the first byte to the end of the response. One account may hold a quarter. */
  httpBodiesBytes = Math.max(32 * MB, shareOf(Math.max(64 * MB, Math.floor(memoryBytes() / 8))));
  /** Bytes of responses that clients have not read. One address may cause a quarter. */
  httpUnreadBytes = this.httpBodiesBytes;
  /** Bytes of a body that is read without an API key: the forms of setup pages. */
  httpFormBytes = 64 * KB;
  /** Bytes of such bodies in memory. One address may cause a sixteenth. `/token` has the same amount for itself. */
  httpFormsBytes = shareOf(4 * MB);
  /** Requests without a valid key of one address, or of one /64 network of IPv6, in a minute. */
  requestsPerAddress = 60_000;
  /** ms for a REST call of a tool, for a list, and for the handshake with an MCP server. Published REST clients repeat after 60 s. */
  upstreamCallTimeoutMs = 50_000;
  /** Messages an MCP server may send with one response, or in a minute on a stream without responses. */
  upstreamMessagesMax = 10_000;
  /** Bytes of these messages together. */
  upstreamMessagesBytes = 64 * MB;
  /** ms between pings to a paired local server. Its tunnel is closed after two without a response. */
  uplinkPingMs = 25_000;
  /** ms without a heartbeat of its process after which a tunnel is considered closed. */
  uplinkLeaseMs = 15_000;
  /** ms for the scan of a server of a release. */
  releaseScanTimeoutMs = 60_000;
  /** ms for which a release waits for its authorization. Afterwards, its status is `AUTH_TIMEOUT`, and it must be resumed. */
  releaseAuthTimeoutMs = 3_600_000;
  /** ms without a heartbeat after which a release passes to another worker. */
  releaseLeaseMs = 15_000;
  /** Newest releases of a server that are stored whatever their age. */
  releaseKeep = 20;
  /** ms for which a link to authorize Slipway at an MCP server is valid. */
  oauthSetupTtlMs = 3_600_000;
  /** ms for the language model to respond to one call. Afterwards, the response is generated from schemas. */
  simulatorTimeoutMs = 20_000;
  /** ms after which hosted code that blocks its event loop is killed. */
  runtimeStallMs = 1_500;
  /** Bytes of a response of hosted code. */
  runtimeResponseBytes = 16 * MB;
  /** Bytes of the stored console lines of one request to hosted code. */
  runtimeLogBytes = 256 * KB;
  /** Concurrent requests to one hosted release. */
  runtimeConcurrency = 64;
  /** ms without a request after which hosted code is stopped. */
  runtimeIdleMs = 300_000;
  /** ms without a heartbeat after which hosted code that keeps sessions may start in another process. */
  runtimeLeaseMs = 15_000;
  /** Concurrent sessions of bundles in one process. One bundle may have a quarter. */
  runtimeBundleSessionsMax = 100;
  /** MB of the files that one session of a bundle may write, in memory. */
  runtimeBundleDiskMb = 64;
  /** ms for which calls use what was read in the 5 s before the database stopped answering; 0: calls need the database. */
  staleReadMs = 60_000;

  /** @param changes members that differ from their defaults */
  constructor(changes: Partial<Tuning> = {}) {
    Object.assign(this, changes);
  }
}

/** @throws StartError if `--tuning` is not an object of known members with numbers */
export function tuningOf(args: readonly string[]): Tuning {
  const tuning = new Tuning();
  const at = args.indexOf('--tuning');
  if (at < 0) return tuning;
  let members: unknown;
  try {
    members = JSON.parse(args[at + 1] ?? '');
  } catch {
    // Rejected below.
  }
  if (typeof members !== 'object' || members === null)
    throw new StartError('--tuning must be followed by a JSON object.');
  for (const [name, value] of Object.entries(members)) {
    if (Object.hasOwn(tuning, name) && typeof value === 'number') continue;
    throw new StartError(`--tuning: ${name} is not a known name, or its value is not a number.`);
  }
  return new Tuning(members);
}
