import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { MoreThan, Repository } from 'typeorm';
import type { EndpointKind, EraVerdict } from './era-verdict.js';
import { UpstreamEra } from './upstream-era.entity.js';

/** Endpoints remembered for all processes. */
const ENDPOINTS_MAX = 200_000;

/** How often a process looks for what is over. */
const SWEEP_EVERY_MS = 3_600_000;

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
