import {
  Injectable,
  Logger,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
  type OnModuleInit,
} from '@nestjs/common';
import type { Counter } from 'prom-client';
import { Env } from '../../../config/env.js';
import { parseUrl } from '../../../config/parse-url.js';
import { isDatabaseAway } from '../../../platform/database/postgres-errors.js';
import { NoSlotError, FairSemaphore } from '../../../platform/limits/fair-semaphore.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import { Schedule } from '../../../platform/schedule/schedule.js';
import { Metrics } from '../../../platform/telemetry/metrics.js';
import type { ReleaseCurrent } from '../../releases/releases.types.js';
import { failedInside } from '../core/connection-status.js';
import { ConnectionCheck } from './connection-check.js';
import { RECHECK_BATCH, RecheckRepository, sweepPauseMs, type ClaimedConnection } from './recheck.repository.js';

/** Concurrent checks of this process; half of them at one host, and half for one account. */
const CHECKS_MAX = 4;

/** Checks connections that are due. Connections to one public URL cost one dial. */
@Injectable()
export class ConnectionRechecker implements OnModuleInit, OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger('connections');
  private readonly slots: FairSemaphore;
  private isEnding = false;
  /** Checks of this process, each for all connections that share it; `late` found no slot in time. */
  private readonly results: Counter<'result'>;

  constructor(
    private readonly repository: RecheckRepository,
    private readonly checks: ConnectionCheck,
    private readonly pubSub: PubSub,
    private readonly schedule: Schedule,
    env: Env,
    metrics: Metrics,
  ) {
    this.slots = new FairSemaphore(CHECKS_MAX, env.upstreamConnectTimeoutMs);
    const help = 'Looks at connections whose time had come, by result.';
    this.results = metrics.labeledCounter('slipway_connection_rechecks_total', help, {
      result: ['done', 'late', 'failed'],
    });
  }

  async onModuleInit(): Promise<void> {
    await this.pubSub.subscribe('releases.current', ({ serverId }: ReleaseCurrent) => void this.hasten(serverId));
  }

  onApplicationBootstrap(): void {
    this.schedule.every('recheck of connections', sweepPauseMs(), async () => {
      while ((await this.run()) >= RECHECK_BATCH && !this.isEnding);
    });
  }

  onModuleDestroy(): void {
    this.isEnding = true;
  }

  /** Checks a batch. @returns the number of connections that were due */
  async run(): Promise<number> {
    const claimed = await this.repository.claimDue();
    const groups = new Map<string, ClaimedConnection[]>();
    const checks: Promise<void>[] = [];
    for (const one of claimed) {
      const { mcpUrl } = one;
      if (!one.isShared || mcpUrl === null) {
        checks.push(this.check(mcpUrl, [one], () => this.checks.runAside(one)));
        continue;
      }
      const group = groups.get(mcpUrl);
      if (group) group.push(one);
      else groups.set(mcpUrl, [one]);
    }
    for (const [url, group] of groups) checks.push(this.check(url, group, () => this.checks.runPublic(url, group)));
    await Promise.all(checks);
    return claimed.length;
  }

  /** After a new release of a server. Every process receives the message; the first one changes the rows. */
  private async hasten(serverId: string): Promise<void> {
    try {
      await this.repository.hastenBroken(serverId);
    } catch (error) {
      this.logger.warn({ msg: 'the connections of a server are not rechecked before their time', err: error });
    }
  }

  /** @param url null for a registry server */
  private async check(url: string | null, group: ClaimedConnection[], work: () => Promise<void>): Promise<void> {
    try {
      const [first, ...others] = new Set(group.map(({ accountId }) => accountId));
      // A check for several accounts counts against none of them.
      const account = first === undefined || others.length > 0 ? [] : [`account ${first}`];
      await this.slots.run([parseUrl(url ?? '')?.host ?? 'registry', ...account], work);
      this.results.inc({ result: 'done' });
    } catch (error) {
      // Without a slot in time the connections are claimed again when the claim ends.
      this.results.inc({ result: error instanceof NoSlotError ? 'late' : 'failed' });
      if (error instanceof NoSlotError) return;
      this.logger.error({ msg: 'a connection could not be checked', err: error });
      // For example secrets that cannot be opened: the connection is broken, and rechecked at growing intervals.
      if (!isDatabaseAway(error)) await this.checks.record(group, failedInside);
    }
  }
}
