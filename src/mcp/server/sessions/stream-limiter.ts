import { Injectable } from '@nestjs/common';
import { RevocationRegistry } from '../../../platform/http/revocation-registry.js';
import { KeyedLimiter } from '../../../platform/limits/keyed-limiter.js';

const STREAMS_EACH_MAX = 128;
const STREAMS_MAX = 10_000;

/** Maximum lifetime of a stream. The client then opens another stream and authenticates again. */
const STREAM_MS_MAX = 60 * 60_000;

/** Open streams, which are counted, limited in time, and closed with their key and the process. */
@Injectable()
export class StreamLimiter {
  private readonly open = new Set<() => void>();
  private readonly tally = new KeyedLimiter(STREAMS_EACH_MAX, STREAMS_MAX);
  private isClosed = false;

  constructor(private readonly revocationRegistry: RevocationRegistry) {}

  get size(): number {
    return this.open.size;
  }

  /**
   * @param owner account and key
   *
   * @param msLeft maximum lifetime, at most an hour
   *
   * @param end closes the stream
   * @returns function to call when the stream has closed; null when a limit is reached
   */
  openStream(
    { account, principal }: { account: string; principal: string },
    msLeft: number,
    end: () => void,
  ): (() => void) | null {
    const leave = this.isClosed ? null : this.tally.acquire(account);
    if (!leave) return null;
    const timer = setTimeout(end, Math.min(msLeft, STREAM_MS_MAX)).unref();
    this.open.add(end);
    const release = this.revocationRegistry.add(principal, end);
    return () => {
      clearTimeout(timer);
      this.open.delete(end);
      release();
      leave();
    };
  }

  /** @returns function to call when the call has finished */
  endWithKey(principal: string, end: () => void): () => void {
    return this.revocationRegistry.add(principal, end);
  }

  close(): void {
    this.isClosed = true;
    for (const end of [...this.open]) end();
  }
}
