import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import { ServerReleasesService } from '../../servers/server-releases.service.js';
import { ServerNotFoundError } from '../../servers/servers.errors.js';
import { ReleaseContracts } from '../contract/release-contracts.js';
import { LeaseLostError } from '../release-lease.js';
import { ReleaseLogRepository } from '../release-log.repository.js';
import { ReleasesRepository } from '../releases.repository.js';
import type { RescanResult } from './rescan-scan.js';
import { verdictOf, type RescanVerdict } from './rescan-verdict.js';
import { RescanRepository, type ClaimedRescan } from './rescan.repository.js';
import { RescansService } from './rescans.service.js';

/** Writes the results of scans of published releases. */
@Injectable()
export class RescanOutcomes {
  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly rows: RescanRepository,
    private readonly releases: ReleasesRepository,
    private readonly logs: ReleaseLogRepository,
    private readonly servers: ServerReleasesService,
    private readonly contracts: ReleaseContracts,
    private readonly rescans: RescansService,
    private readonly pubSub: PubSub,
  ) {}

  /** Writes a result in one transaction and publishes it. Does nothing when the release is not current any more. */
  async write(claim: ClaimedRescan, result: RescanResult): Promise<void> {
    const current = await this.servers.currentOf(claim.serverId);
    if (current?.releaseId !== claim.releaseId) return;
    const verdict = verdictOf(current, claim, result);
    try {
      await this.database.transaction((tx) => this.commit(claim, verdict, tx));
    } catch (error) {
      if (error instanceof LeaseLostError || error instanceof ServerNotFoundError) return;
      throw error;
    }
    if (verdict.lines.length > 0) this.pubSub.publish('releases.changed', { id: claim.releaseId });
    if (verdict.comparison !== null) this.pubSub.publish('releases.offers', { serverId: claim.serverId });
  }

  /** @throws LeaseLostError, ServerNotFoundError */
  private async commit(claim: ClaimedRescan, verdict: RescanVerdict, tx: EntityManager): Promise<void> {
    const { serverId, releaseId } = claim;
    const { isSound, snapshot, comparison, scanPassed, lines, reported } = verdict;
    // First: publishing locks the server's row before any other.
    await this.servers.lock(serverId, tx);
    const failures = isSound ? 0 : claim.failures + 1;
    const next = { failures, reported, pauseSeconds: this.rescans.pauseSeconds(failures) };
    if (!(await this.rows.conclude(claim, next, tx))) throw new LeaseLostError();
    if (scanPassed !== null) await this.servers.setScan(serverId, scanPassed, tx);
    if (snapshot !== null) {
      await this.servers.setCurrent(serverId, snapshot, tx);
      await this.releases.saveSnapshot(releaseId, snapshot, tx);
    }
    if (comparison !== null) await this.contracts.record({ serverId, releaseId, foundBy: 'rescan' }, comparison, tx);
    await this.logs.append(releaseId, lines, tx);
    if (lines.length > 0) await this.logs.removeOldRescanLines(releaseId, tx);
  }
}
