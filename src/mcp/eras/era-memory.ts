import { createHash } from 'node:crypto';
import { Inject, Injectable, Logger } from '@nestjs/common';
import { growingLru } from '../../platform/limits/growing-lru.js';
import { ErasRepository, type EraVerdict } from './era.repository.js';

/** Stores eras, which are probed once for all callers, processes and credentials: the era is a property of the server. */
@Injectable()
export class EraMemory {
  private readonly verdicts = growingLru<EraVerdict>();
  private readonly running = new Map<string, Promise<EraVerdict | null>>();
  /** Pending deletions, during which the stored verdict must not be read again. */
  private readonly forgetting = new Map<string, Promise<unknown>>();
  private readonly logger = new Logger('mcp');

  constructor(
    @Inject(ErasRepository) private readonly erasRepository: Pick<ErasRepository, 'read' | 'write' | 'forget'>,
  ) {}

  /**
   * Determines the era. Concurrent callers share one probe; when it fails, possibly because of its caller's credentials, each caller probes
   * itself.
   *
   * @throws errors of `probe`
   */
  async settle(url: URL, probe: () => Promise<EraVerdict>): Promise<EraVerdict> {
    const key = keyOf(url);
    const cached = this.verdicts.get(key);
    if (cached && cached.expiresAt > Date.now()) return cached;
    const running = this.running.get(key);
    if (running) return (await running) ?? this.store(key, await probe());
    let failure: unknown;
    const work = this.loadOrProbe(key, probe).catch((error: unknown) => {
      failure = error;
      return null;
    });
    this.running.set(key, work);
    const verdict = await work;
    this.running.delete(key);
    if (verdict) return verdict;
    throw failure;
  }

  async forget(url: URL, verdict: EraVerdict): Promise<void> {
    const key = keyOf(url);
    if (this.verdicts.get(key)?.learnedAt === verdict.learnedAt) this.verdicts.delete(key);
    const work = this.withStore(() => this.erasRepository.forget(key, verdict));
    this.forgetting.set(key, work);
    await work;
    if (this.forgetting.get(key) === work) this.forgetting.delete(key);
  }

  private async loadOrProbe(key: string, probe: () => Promise<EraVerdict>): Promise<EraVerdict> {
    await this.forgetting.get(key);
    const stored = await this.withStore(() => this.erasRepository.read(key));
    if (!stored) return this.store(key, await probe());
    this.verdicts.set(key, stored);
    return stored;
  }

  async refine(url: URL, verdict: EraVerdict): Promise<void> {
    await this.store(keyOf(url), verdict);
  }

  private async store(key: string, verdict: EraVerdict): Promise<EraVerdict> {
    this.verdicts.set(key, verdict);
    await this.withStore(() => this.erasRepository.write(key, verdict));
    return verdict;
  }

  /** Runs a query. A database failure costs a probe and does not fail the call. */
  private async withStore<T>(work: () => Promise<T>): Promise<T | null> {
    try {
      return await work();
    } catch (error) {
      this.logger.warn({ msg: 'era verdicts could not be read or written', err: error });
      return null;
    }
  }
}

/** Returns a hash of the normalized URL without its fragment: the query can contain a credential. */
function keyOf(url: URL): string {
  const normal = new URL(url);
  normal.hash = '';
  return createHash('sha256').update(normal.href).digest('base64url');
}
