import {
  Injectable,
  Logger,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
  type OnModuleInit,
} from '@nestjs/common';
import { Env } from '../../../config/env.js';
import { parseUrl } from '../../../config/parse-url.js';
import { isDatabaseUnreachable } from '../../../platform/database/postgres-errors.js';
import { groupBy } from '../../../platform/group-by.js';
import { KeyedLimiter, NoSlotError } from '../../../platform/limits/keyed-limiter.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import { Schedule } from '../../../platform/schedule/schedule.js';
import { Metrics, type LabeledCounter } from '../../../platform/telemetry/metrics.js';
import type { ReleaseCurrent } from '../../releases/releases.types.js';
import { failedInside, statusAfter } from '../core/connection-status.js';
import { ConnectionCheck } from './connection-check.js';
import {
  RECHECK_BATCH,
  RechecksRepository,
  sweepPauseMs,
  type ClaimedConnection,
  REFRESH_BATCH,
  type DueToken,
} from './recheck.repository.js';
import { CredentialsService } from '../../oauth/credentials.service.js';

/** Maximum number of concurrent checks, of which at most half run at one host or for one account. */
const CHECKS_MAX = 4;

/** Rechecks connections; those to one public URL take one dial. */
@Injectable()
export class ConnectionRechecker implements OnModuleInit, OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger('connections');
  private readonly slots: KeyedLimiter;
  private isEnding = false;
  /** Counter of checks by result; `late` counts checks without a slot in time. */
  private readonly results: LabeledCounter<'result'>;

  constructor(
    private readonly rechecksRepository: RechecksRepository,
    private readonly connectionCheck: ConnectionCheck,
    private readonly pubSub: PubSub,
    private readonly schedule: Schedule,
    env: Env,
    metrics: Metrics,
  ) {
    this.slots = KeyedLimiter.fair(CHECKS_MAX, env.upstreamConnectTimeoutMs);
    const help = 'Rechecks of connections, by result.';
    this.results = metrics.labeledCounter('slipway_connection_rechecks_total', help, {
      result: ['done', 'late', 'failed'],
    });
  }

  async onModuleInit(): Promise<void> {
    await this.pubSub.subscribe('releases.current', ({ serverId }: ReleaseCurrent) => void this.hastenChecks(serverId));
  }

  onApplicationBootstrap(): void {
    this.schedule.every('recheck of connections', sweepPauseMs(), async () => {
      while ((await this.run()) >= RECHECK_BATCH && !this.isEnding);
    });
  }

  onModuleDestroy(): void {
    this.isEnding = true;
  }

  /** @returns the number of due connections */
  async run(): Promise<number> {
    const claimed = await this.rechecksRepository.claimDue();
    const groups = groupBy(claimed, ({ id, mcpUrl, isShared }) => (isShared && mcpUrl) || id);
    await Promise.all([...groups.values()].map((group) => this.check(group)));
    return claimed.length;
  }

  /** Makes checks due earlier. Every process receives the message, and the first one changes the rows. */
  private async hastenChecks(serverId: string): Promise<void> {
    try {
      await this.rechecksRepository.hastenBroken(serverId);
    } catch (error) {
      this.logger.warn({ msg: 'the connections of a server are not rechecked before their time', err: error });
    }
  }

  private async check(group: ClaimedConnection[]): Promise<void> {
    const [first] = group;
    const { mcpUrl, isShared, accountId } = first;
    // A check for several accounts counts against none of them.
    // eslint-disable-next-line no-restricted-syntax -- Names the account in a log line.
    const account = group.every((other) => other.accountId === accountId) ? [`account ${accountId}`] : [];
    try {
      await this.slots.run([parseUrl(mcpUrl ?? '')?.host ?? 'registry', ...account], () =>
        isShared && mcpUrl !== null
          ? this.connectionCheck.runPublic(mcpUrl, group)
          : this.connectionCheck.runAside(first),
      );
      this.results.inc({ result: 'done' });
    } catch (error) {
      // Without a slot in time, the connections are claimed again when the claim expires.
      this.results.inc({ result: error instanceof NoSlotError ? 'late' : 'failed' });
      if (error instanceof NoSlotError) return;
      this.logger.error({
        msg: 'a connection could not be checked',
        ...(await this.rechecksRepository.namesOf(first)),
        err: error,
      });
      // If secrets cannot be opened, for example, the connection is broken, and rechecked at growing intervals.
      if (!isDatabaseUnreachable(error)) await this.connectionCheck.record(group, failedInside);
    }
  }
}

/**
 * Refreshes tokens of connections in use before they expire, so that no call waits for it and the status shows a lost authorization before
 * a call fails.
 */
@Injectable()
export class ConnectionRefresher implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger('connections');
  private isEnding = false;

  constructor(
    private readonly rechecksRepository: RechecksRepository,
    private readonly credentialsService: CredentialsService,
    private readonly connectionCheck: ConnectionCheck,
    private readonly schedule: Schedule,
  ) {}

  onApplicationBootstrap(): void {
    this.schedule.every('refresh of tokens', sweepPauseMs(), () => this.run());
  }

  onModuleDestroy(): void {
    this.isEnding = true;
  }

  /** Refreshes due tokens. A token that cannot be refreshed does not delay the others. */
  async run(): Promise<void> {
    let due: DueToken[] = [];
    do {
      due = await this.rechecksRepository.dueTokens(due.at(-1) ?? null);
      await Promise.all(due.map((token) => this.attempt(token)));
    } while (due.length === REFRESH_BATCH && !this.isEnding);
  }

  private async attempt(token: DueToken): Promise<void> {
    try {
      await this.refresh(token);
    } catch (error) {
      const level = isDatabaseUnreachable(error) ? 'debug' : 'error';
      const names = await this.rechecksRepository.namesOf(token);
      this.logger[level]({ msg: 'a token could not be refreshed before its end', ...names, err: error });
    }
  }

  private async refresh({ id, revision, upstreamUrl }: DueToken): Promise<void> {
    try {
      await this.credentialsService.accessToken({ kind: 'connection', id }, upstreamUrl);
    } catch (error) {
      const status = statusAfter(error);
      if (!status) throw error;
      await this.connectionCheck.record([{ id, revision }], status);
    }
  }
}
