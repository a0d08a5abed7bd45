import { createHash } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { EraStore } from './era-store.js';
import type { EraVerdict } from './era-store.js';

/** Endpoints this process knows without asking. */
const KNOWN_MAX = 50_000;

/**
 * What answers at which URL, found out once for all who call it, in whatever process and with whatever credentials: that
 * is a property of the server. Nothing else it says is kept here.
 */
@Injectable()
export class EraMemory {
  private readonly known = new LRUCache<string, EraVerdict>({ max: KNOWN_MAX });
  private readonly running = new Map<string, Promise<EraVerdict | null>>();
  /** What is being forgotten: until then it must not be read again. */
  private readonly forgetting = new Map<string, Promise<unknown>>();
  private readonly logger = new Logger('mcp');

  constructor(private readonly store: Pick<EraStore, 'read' | 'write' | 'forget'>) {}

  /**
   * The verdict on an endpoint, with `probe` if nobody knows it. Those who ask at once wait for one probe; when that
   * fails, which may be for its caller's credentials, each tries for itself.
   *
   * @throws what `probe` throws
   */
  async settle(url: URL, probe: () => Promise<EraVerdict>): Promise<EraVerdict> {
    const key = keyOf(url);
    const known = this.known.get(key);
    if (known && known.expiresAt > Date.now()) return known;
    const running = this.running.get(key);
    if (running) return (await running) ?? this.found(key, await probe());
    let failure: unknown;
    const work = this.learn(key, probe).catch((error: unknown) => {
      failure = error;
      return null;
    });
    this.running.set(key, work);
    const verdict = await work;
    this.running.delete(key);
    if (verdict) return verdict;
    throw failure;
  }

  /** The endpoint does not behave so: the next one who asks finds out anew. */
  async forget(url: URL, verdict: EraVerdict): Promise<void> {
    const key = keyOf(url);
    if (this.known.get(key)?.learnedAt === verdict.learnedAt) this.known.delete(key);
    const work = this.withStore(() => this.store.forget(key, verdict));
    this.forgetting.set(key, work);
    await work;
    if (this.forgetting.get(key) === work) this.forgetting.delete(key);
  }

  private async learn(key: string, probe: () => Promise<EraVerdict>): Promise<EraVerdict> {
    await this.forgetting.get(key);
    const stored = await this.withStore(() => this.store.read(key));
    if (!stored) return this.found(key, await probe());
    this.known.set(key, stored);
    return stored;
  }

  private async found(key: string, verdict: EraVerdict): Promise<EraVerdict> {
    this.known.set(key, verdict);
    await this.withStore(() => this.store.write(key, verdict));
    return verdict;
  }

  /** A database that is away costs a probe, not the call. */
  private async withStore<T>(work: () => Promise<T>): Promise<T | null> {
    try {
      return await work();
    } catch (error) {
      this.logger.warn({ msg: 'what is known of upstreams could not be read or written', err: error });
      return null;
    }
  }
}

/** The URL in its normal form without fragment, hashed: it may carry a credential in its query. */
function keyOf(url: URL): string {
  const normal = new URL(url);
  normal.hash = '';
  return createHash('sha256').update(normal.href).digest('base64url');
}
