import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import { ServerReleasesService } from '../../servers/server-releases.service.js';
import { ServerNotFoundError } from '../../servers/servers.errors.js';
import { ReleaseContracts } from '../contract/release-contracts.js';
import { LeaseLostError } from '../release-lease.js';
import { writeLines } from '../release-log.js';
import type { OffersChanged } from '../releases.types.js';
import type { ClaimedRescan } from './rescan-claims.js';
import type { Rescanned } from './rescan-scan.js';
import { verdictOf, type RescanVerdict } from './rescan-verdict.js';
import { RescansService } from './rescans.service.js';

/** Lines that the scans of a published release leave in its log; older ones are removed. Those of its pipeline stay. */
const LINES_MAX = 500;

/** Writes what came of scanning published releases again. */
@Injectable()
export class RescanOutcomes {
  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly servers: ServerReleasesService,
    private readonly contracts: ReleaseContracts,
    private readonly rescans: RescansService,
    private readonly pubSub: PubSub,
  ) {}

  /** Writes it and tells everybody, all or nothing: nothing when another release became current, or the server went. */
  async write(claim: ClaimedRescan, found: Rescanned): Promise<void> {
    const current = await this.servers.currentOf(claim.serverId);
    if (current?.releaseId !== claim.releaseId) return;
    const verdict = verdictOf(current, claim, found);
    try {
      await this.database.transaction((tx) => this.commit(claim, verdict, tx));
    } catch (error) {
      if (error instanceof LeaseLostError || error instanceof ServerNotFoundError) return;
      throw error;
    }
    if (verdict.lines.length > 0) this.pubSub.publish('releases.changed', { id: claim.releaseId });
    if (verdict.comparison === null) return;
    const changed: OffersChanged = { serverId: claim.serverId };
    this.pubSub.publish('releases.offers', changed);
  }

  private async commit(claim: ClaimedRescan, verdict: RescanVerdict, tx: EntityManager): Promise<void> {
    const { serverId, releaseId } = claim;
    const { snapshot, comparison, scanPassed, lines } = verdict;
    // First: whoever publishes locks the server's row before any other, and so must we.
    await this.servers.lock(serverId, tx);
    await this.conclude(claim, verdict, tx);
    if (scanPassed !== null) await this.servers.setScan(serverId, scanPassed, tx);
    if (snapshot !== null) {
      await this.servers.setCurrent(serverId, snapshot, tx);
      await tx.query('UPDATE releases SET snapshot = $2::jsonb WHERE id = $1', [releaseId, JSON.stringify(snapshot)]);
    }
    if (comparison !== null) await this.contracts.record({ serverId, releaseId, foundBy: 'rescan' }, comparison, tx);
    await writeLines(releaseId, lines, tx);
    if (lines.length > 0) await tx.query(REMOVE_OLD_LINES, [releaseId]);
  }

  /** When it is scanned next: at once when somebody asked meanwhile. @throws LeaseLostError */
  private async conclude(
    { serverId, releaseId, holder, askedAt, failures }: ClaimedRescan,
    { isSound, told }: RescanVerdict,
    tx: EntityManager,
  ): Promise<void> {
    const failed = isSound ? 0 : failures + 1;
    const isDone = 'asked_at IS NOT DISTINCT FROM $4';
    const [, affected] = await tx.query<[unknown[], number]>(
      `UPDATE server_rescans r
          SET holder = NULL, failures = $5, told = $6,
              next_at = CASE WHEN NOT (${isDone}) THEN now() WHEN upstream_url IS NULL THEN NULL
                             ELSE now() + $7 * interval '1 second' END,
              sealed_credentials = CASE WHEN ${isDone} THEN NULL ELSE sealed_credentials END,
              asked_at = CASE WHEN ${isDone} THEN NULL ELSE asked_at END
        WHERE server_id = $1 AND holder = $3
          AND EXISTS (SELECT 1 FROM servers s WHERE s.id = $1 AND s.current_release_id = $2)`,
      [serverId, releaseId, holder, askedAt, failed, told, this.rescans.pauseSeconds(failed)],
    );
    if (affected === 0) throw new LeaseLostError();
  }
}

/** All that stands behind the end of the pipeline in the log of a release, but the newest lines. */
const REMOVE_OLD_LINES = `DELETE FROM release_logs WHERE release_id = $1 AND stage = 'scan'
  AND seq > (SELECT max(seq) FROM release_logs WHERE release_id = $1 AND stage = 'publish' AND level = 'success')
  AND seq <= (SELECT seq FROM release_logs WHERE release_id = $1 ORDER BY seq DESC OFFSET ${LINES_MAX} LIMIT 1)`;
