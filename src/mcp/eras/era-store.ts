import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { MoreThan, Repository } from 'typeorm';
import { UpstreamEra } from './upstream-era.entity.js';

/** Endpoints remembered for all processes. */
const ENDPOINTS_MAX = 200_000;

/** How often a process looks for what is over. */
const SWEEP_EVERY_MS = 3_600_000;

/**
 * What answers at an endpoint: a `modern` server (2026-07-28), or a legacy one over `streamable` HTTP or over `sse`, the
 * two endpoints of 2024-11-05.
 */
type EndpointKind = 'modern' | 'streamable' | 'sse';

/** What is known of an endpoint. */
export interface EraVerdict {
  kind: EndpointKind;
  /** What the server did that told, for whoever looks into it. */
  reason: string;
  learnedAt: number;
  /** From then on it is found out anew; both in epoch milliseconds. */
  expiresAt: number;
}

const HOUR_MS = 3_600_000;

/**
 * A modern verdict that has become wrong fails loudly, so it holds until it is contradicted; 90 days bound the table. A
 * legacy one that has become wrong works on silently, so it holds for a day, and one that may be a proxy's doing for an hour.
 */
const TTL_MS = { modern: 90 * 24 * HOUR_MS, legacy: 24 * HOUR_MS, unsure: HOUR_MS };

/** The verdicts that outlive a process. */
@Injectable()
export class EraStore {
  private sweptAt = Date.now();

  constructor(@InjectRepository(UpstreamEra) private readonly eras: Repository<UpstreamEra>) {}

  /** What is known of an endpoint and not over. */
  async read(endpoint: string): Promise<EraVerdict | null> {
    const row = await this.eras.findOne({ where: { endpoint, expiresAt: MoreThan(new Date()) } });
    if (!row) return null;
    const { kind, reason, learnedAt, expiresAt } = row;
    return { kind: kind as EndpointKind, reason, learnedAt: learnedAt.getTime(), expiresAt: expiresAt.getTime() };
  }

  async write(endpoint: string, { kind, reason, learnedAt, expiresAt }: EraVerdict): Promise<void> {
    const row = { endpoint, kind, reason, learnedAt: new Date(learnedAt), expiresAt: new Date(expiresAt) };
    await this.eras.upsert(row, ['endpoint']);
    await this.sweep();
  }

  /** Forgets this verdict, unless another process has learned a newer one meanwhile. */
  async forget(endpoint: string, { learnedAt }: EraVerdict): Promise<void> {
    await this.eras
      .createQueryBuilder()
      .delete()
      .where('endpoint = :endpoint AND learned_at <= :learnedAt', { endpoint, learnedAt: new Date(learnedAt) })
      .execute();
  }

  private async sweep(): Promise<void> {
    if (Date.now() - this.sweptAt < SWEEP_EVERY_MS) return;
    this.sweptAt = Date.now();
    await this.eras.query(
      `DELETE FROM upstream_eras WHERE expires_at < now() OR endpoint IN
         (SELECT endpoint FROM upstream_eras ORDER BY expires_at DESC OFFSET $1)`,
      [ENDPOINTS_MAX],
    );
  }
}

/** A verdict of this moment. */
export function verdictOf(kind: EndpointKind, reason: string, isUnsure = false): EraVerdict {
  const ttlMs = isUnsure ? TTL_MS.unsure : kind === 'modern' ? TTL_MS.modern : TTL_MS.legacy;
  const now = Date.now();
  return { kind, reason, learnedAt: now, expiresAt: now + ttlMs };
}

/** True for a legacy verdict old enough to be doubted when the server has lost its sessions: it may be a new one now. */
export function isDoubtful({ learnedAt }: EraVerdict): boolean {
  return Date.now() - learnedAt > HOUR_MS;
}
