import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { MoreThan, Repository } from 'typeorm';
import { UpstreamEra } from './upstream-era.entity.js';
import { deletionTime } from '../../platform/database/deletion-time.js';

const ENDPOINTS_MAX = 200_000;

const SWEEP_EVERY_MS = 3_600_000;

/**
 * Kind of an endpoint: a `modern` server (2026-07-28), one of `both` eras over streamable HTTP, or a legacy one over
 * `streamable` HTTP or `sse` (HTTP+SSE of 2024-11-05). A `modern` server may turn out to be one of `both`.
 */
type EndpointKind = 'modern' | 'both' | 'streamable' | 'sse';

export interface EraVerdict {
  kind: EndpointKind;
  /** Evidence from the probe, for diagnosis. */
  reason: string;
  learnedAt: number;
  /** End of validity, in epoch milliseconds, as is `learnedAt`. */
  expiresAt: number;
}

const HOUR_MS = 3_600_000;

/**
 * An outdated modern verdict fails visibly and is then replaced; 90 days limit the table. An outdated legacy verdict
 * keeps working unnoticed and expires after a day, or after an hour if a proxy may have caused it.
 */
const TTL_MS = { modern: 90 * 24 * HOUR_MS, legacy: 24 * HOUR_MS, unsure: HOUR_MS };

@Injectable()
export class ErasRepository {
  private sweptAt = Date.now();

  constructor(@InjectRepository(UpstreamEra) private readonly upstreamEraRepository: Repository<UpstreamEra>) {}

  /** Returns the unexpired verdict of an endpoint; null without one. */
  async read(endpoint: string): Promise<EraVerdict | null> {
    const row = await this.upstreamEraRepository.findOne({ where: { endpoint, expiresAt: MoreThan(new Date()) } });
    if (!row) return null;
    const { kind, reason, learnedAt, expiresAt } = row;
    return { kind: kind as EndpointKind, reason, learnedAt: learnedAt.getTime(), expiresAt: expiresAt.getTime() };
  }

  async write(endpoint: string, { kind, reason, learnedAt, expiresAt }: EraVerdict): Promise<void> {
    const row = { endpoint, kind, reason, learnedAt: new Date(learnedAt), expiresAt: new Date(expiresAt) };
    await this.upstreamEraRepository.upsert(row, ['endpoint']);
    if (Date.now() - this.sweptAt < SWEEP_EVERY_MS) return;
    this.sweptAt = Date.now();
    const now = await deletionTime(this.upstreamEraRepository);
    await this.upstreamEraRepository.query(
      `DELETE FROM upstream_eras WHERE expires_at < $2 OR endpoint IN
         (SELECT endpoint FROM upstream_eras ORDER BY expires_at DESC OFFSET $1)`,
      [ENDPOINTS_MAX, now],
    );
  }

  /** Does nothing if another process has stored a newer verdict. */
  async forget(endpoint: string, { learnedAt }: EraVerdict): Promise<void> {
    await this.upstreamEraRepository
      .createQueryBuilder()
      .delete()
      .where('endpoint = :endpoint AND learned_at <= :learnedAt', { endpoint, learnedAt: new Date(learnedAt) })
      .execute();
  }
}

export function verdictOf(kind: EndpointKind, reason: string, isUnsure = false): EraVerdict {
  const ttlMs = isUnsure ? TTL_MS.unsure : kind === 'modern' ? TTL_MS.modern : TTL_MS.legacy;
  const now = Date.now();
  return { kind, reason, learnedAt: now, expiresAt: now + ttlMs };
}

/** Returns true for a verdict that must be checked: a server that lost its sessions might have been upgraded since. */
export function isStale({ learnedAt }: EraVerdict): boolean {
  return Date.now() - learnedAt > HOUR_MS;
}
