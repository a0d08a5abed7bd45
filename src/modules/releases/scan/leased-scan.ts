import { Cancellation } from '../../../mcp/protocol/cancellation.js';
import type { Channel } from '../../../mcp/protocol/channel.js';
import { scanServer, type ServerScan } from '../../../mcp/client/server-scan.js';
import type { LogLine } from '../release.entity.js';

export interface ScanContext {
  /** @throws LeaseLostError */
  log(line: LogLine): Promise<void>;
  /** @throws LeaseLostError as soon as the lease is lost, without waiting for `work` */
  whileHeld<T>(work: Promise<T>): Promise<T>;
}

export interface LeasedScanOptions {
  timeoutMs: number;
  redact?: (message: string) => string;
  /** Receives the closing of the channel, which the result does not wait for. */
  onClose?: (closed: Promise<void>) => void;
}

/**
 * Logs the progress, and closes the channel.
 *
 * @throws UpstreamFailure, LeaseLostError
 */
export async function scanUnderLease(
  channel: Channel,
  lease: ScanContext,
  { timeoutMs, redact = (message) => message, onClose }: LeasedScanOptions,
): Promise<ServerScan> {
  const cancellation = new Cancellation();
  let logged: Promise<void> = Promise.resolve();
  const onProgress = (message: string) => {
    logged = logged.then(() => lease.log({ stage: 'scan', level: 'info', message: redact(message) }));
    // Awaited below; until then, a rejection would be unhandled and crash the process.
    logged.catch(() => undefined);
  };
  try {
    const cancelled: Channel = {
      open: (openTimeoutMs) => channel.open(openTimeoutMs),
      request: (call) => channel.request({ ...call, cancellation }),
      listen: (...args) => channel.listen(...args),
      release: (key) => channel.release(key),
      close: () => channel.close(),
    };
    return await lease.whileHeld(scanServer(cancelled, { timeoutMs, onProgress }));
  } finally {
    cancellation.cancel();
    // `whileHeld` reports a lost lease.
    await logged.catch(() => undefined);
    const closed = channel.close();
    onClose?.(closed);
  }
}
