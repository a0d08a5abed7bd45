import { Cancellation } from '../../../mcp/protocol/cancellation.js';
import type { Channel } from '../../../mcp/protocol/channel.js';
import { scanServer, type ServerScan } from '../../../mcp/client/server-scan.js';
import type { LogLine } from '../release-log.entity.js';

/** What a scan runs under: a lease that may be lost, which ends it, and a log to tell. */
export interface ScanHold {
  /** Tells how it goes. @throws LeaseLostError */
  log(line: LogLine): Promise<void>;
  /** What `work` comes to. @throws LeaseLostError as soon as the lease is lost */
  whileHeld<T>(work: Promise<T>): Promise<T>;
}

export interface LeasedScanOptions {
  /** For the whole scan. */
  timeoutMs: number;
  /** A line for the log as its readers may see it. */
  inWords?: (message: string) => string;
}

/**
 * Asks a server what it offers, tells the release's log how that goes, and closes the channel.
 *
 * @throws UpstreamFailure, LeaseLostError
 */
export async function scanUnderLease(
  channel: Channel,
  lease: ScanHold,
  { timeoutMs, inWords = (message) => message }: LeasedScanOptions,
): Promise<ServerScan> {
  const cancellation = new Cancellation();
  let told: Promise<void> = Promise.resolve();
  const onProgress = (message: string) => {
    told = told.then(() => lease.log({ stage: 'scan', level: 'info', message: inWords(message) }));
    // It is heard below; until then it must not count as an error that nobody heard, which ends the process.
    told.catch(() => undefined);
  };
  try {
    return await lease.whileHeld(scanServer(cancelledWith(cancellation, channel), { timeoutMs, onProgress }));
  } finally {
    // A lease that is lost ends the scan, not only the wait for it.
    cancellation.cancel();
    // In the log before what comes of the scan; one that fails because the lease is lost is told by `whileHeld`.
    await told.catch(() => undefined);
    void channel.close();
  }
}

/** A channel whose requests end when nobody waits for them any more. */
function cancelledWith(cancellation: Cancellation, channel: Channel): Channel {
  return {
    open: (timeoutMs) => channel.open(timeoutMs),
    request: (call) => channel.request({ ...call, cancellation }),
    listen: (...args) => channel.listen(...args),
    release: (key) => channel.release(key),
    close: () => channel.close(),
  };
}
