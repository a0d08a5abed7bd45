/**
 * Scans published releases again, in every worker process: when they are due (`RELEASE_RESCAN_HOURS`), and immediately
 * on request.
 *
 * Due rows are claimed in Postgres. Four scans run concurrently, two of them at one host, and two of one account in the
 * whole service. `rescan-verdict.ts` decides what follows from a result.
 *
 * A failed scan changes nothing that callers see and is repeated at growing intervals. A result is dropped if its
 * release is no longer current.
 */
import {
  Injectable,
  Logger,
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
  type OnModuleInit,
} from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { Env } from '../../../config/env.js';
import { parseUrl } from '../../../config/parse-url.js';
import { isDatabaseUnreachable } from '../../../platform/database/postgres-errors.js';
import { KeyedLimiter, NoSlotError } from '../../../platform/limits/keyed-limiter.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import { Schedule } from '../../../platform/schedule/schedule.js';
import { LeaseLostError, LossSignal } from '../release-lease.js';
import type { ScanContext } from '../scan/leased-scan.js';
import { ServerReleasesService } from '../../servers/server-releases.service.js';
import { ServerNotFoundError } from '../../servers/servers.errors.js';
import { ReleaseContracts } from '../contract/release-contracts.js';
import { ReleaseLogsRepository } from '../release-log.repository.js';
import { ReleasesRepository } from '../releases.repository.js';
import { failedInside, RescanScan, type RescanResult } from './rescan-scan.js';
import { RescansRepository, type ClaimedRescan } from './rescan.repository.js';
import { verdictOf, type RescanVerdict } from './rescan-verdict.js';
import { RescansService } from './rescans.service.js';

/** Pause between queries, which are cheap if nothing is due. Up to half is added at random, so that processes do not query in step. */
const PAUSE_MS = 5_000;

/** Maximum number of concurrent scans, of which at most half run at one host. */
const SCANS_MAX = 4;

const NO_SLOT_SECONDS = 15;

@Injectable()
export class RescanOutcomes {
  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly rescansRepository: RescansRepository,
    private readonly releasesRepository: ReleasesRepository,
    private readonly releaseLogsRepository: ReleaseLogsRepository,
    private readonly serverReleasesService: ServerReleasesService,
    private readonly releaseContracts: ReleaseContracts,
    private readonly rescansService: RescansService,
    private readonly pubSub: PubSub,
  ) {}

  /** Writes a result in one transaction. Does nothing if the release is no longer current. */
  async write(claim: ClaimedRescan, result: RescanResult): Promise<void> {
    const current = await this.serverReleasesService.currentOf(claim.serverId);
    if (current?.releaseId !== claim.releaseId) return;
    const verdict = await verdictOf(current, claim, result);
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
    // First, because publishing locks the row of the server before any other.
    await this.serverReleasesService.lock(serverId, tx);
    const failures = isSound ? 0 : claim.failures + 1;
    const next = { failures, reported, pauseSeconds: this.rescansService.pauseSeconds(failures) };
    if (!(await this.rescansRepository.conclude(claim, next, tx))) throw new LeaseLostError();
    if (scanPassed !== null) await this.serverReleasesService.setScan(serverId, scanPassed, tx);
    if (snapshot !== null) {
      await this.serverReleasesService.setCurrent(serverId, snapshot, tx);
      await this.releasesRepository.saveSnapshot(releaseId, snapshot, tx);
    }
    if (comparison !== null)
      await this.releaseContracts.record({ serverId, releaseId, foundBy: 'rescan' }, comparison, tx);
    await this.releaseLogsRepository.append(releaseId, lines, tx);
    if (lines.length > 0) await this.releaseLogsRepository.removeOldRescanLines(releaseId, tx);
  }
}

/** Context of a rescan, of which only the result is logged. */
class RescanContext extends LossSignal implements ScanContext {
  log(): Promise<void> {
    return Promise.resolve();
  }
}

@Injectable()
export class Rescanner implements OnModuleInit, OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger('releases');
  private readonly slots: KeyedLimiter;
  private readonly running = new Map<Promise<void>, RescanContext>();
  private taking: Promise<void> = Promise.resolve();
  private isEnding = false;

  constructor(
    private readonly rescansRepository: RescansRepository,
    private readonly rescanScan: RescanScan,
    private readonly rescanOutcomes: RescanOutcomes,
    private readonly pubSub: PubSub,
    private readonly schedule: Schedule,
    env: Env,
  ) {
    this.slots = KeyedLimiter.fair(SCANS_MAX, env.upstreamConnectTimeoutMs);
  }

  async onModuleInit(): Promise<void> {
    await this.pubSub.subscribe('releases.rescan', () => void this.claimScans());
  }

  onApplicationBootstrap(): void {
    this.schedule.every('start of rescans', PAUSE_MS * (1 + Math.random() / 2), () => this.claimScans());
  }

  /** Stops the scans, which another process starts again. */
  async beforeApplicationShutdown(): Promise<void> {
    this.isEnding = true;
    for (const context of this.running.values()) context.signalLoss();
    await this.settled();
  }

  /** Starts scans without waiting for them; each scan that finishes starts another one. The promise never rejects. */
  claimScans(): Promise<void> {
    this.taking = this.taking.then(async () => {
      try {
        const free = SCANS_MAX - this.running.size;
        if (this.isEnding || free <= 0) return;
        for (const claim of await this.rescansRepository.claim(free)) this.begin(claim);
      } catch (error) {
        this.report(error, 'no rescans were claimed');
      }
    });
    return this.taking;
  }

  async settled(): Promise<void> {
    await this.taking;
    while (this.running.size > 0) await Promise.all(this.running.keys());
  }

  private begin(claim: ClaimedRescan): void {
    const context = new RescanContext();
    const scanning = this.scanOne(claim, context)
      .catch((error: unknown) => this.report(error, 'the result of a rescan was not written'))
      .finally(() => {
        this.running.delete(scanning);
        void this.claimScans();
      });
    this.running.set(scanning, context);
  }

  private async scanOne(claim: ClaimedRescan, context: RescanContext): Promise<void> {
    try {
      const host = parseUrl(claim.upstreamUrl ?? '')?.host ?? 'here';
      const result = await this.slots.run(host, () => {
        // This process might have begun to stop while the scan waited for its slot.
        if (this.isEnding) throw new LeaseLostError();
        return this.rescanScan.run(claim, context);
      });
      await this.rescanOutcomes.write(claim, result);
    } catch (error) {
      if (error instanceof LeaseLostError) return this.rescansRepository.giveBack(claim, 0);
      if (error instanceof NoSlotError) return this.rescansRepository.giveBack(claim, NO_SLOT_SECONDS);
      if (isDatabaseUnreachable(error)) throw error;
      const names = await this.rescansRepository.namesOf(claim);
      const msg = 'a release could not be scanned again';
      this.logger.error({ msg, releaseId: claim.releaseId, ...names, err: error });
      await this.rescanOutcomes.write(claim, failedInside);
    }
  }

  private report(error: unknown, msg: string): void {
    this.logger[isDatabaseUnreachable(error) ? 'debug' : 'error']({ msg, err: error });
  }
}
