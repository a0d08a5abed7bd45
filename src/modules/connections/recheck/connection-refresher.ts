import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { isDatabaseAway } from '../../../platform/database/postgres-errors.js';
import { Schedule } from '../../../platform/schedule/schedule.js';
import { AuthorizationRequiredError, CredentialUnavailableError } from '../../oauth/credentials.errors.js';
import { CredentialsService } from '../../oauth/credentials.service.js';
import { statusAfter } from '../core/connection-status.js';
import { ConnectionCheck } from './connection-check.js';
import { RecheckRepository, REFRESH_BATCH, sweepPauseMs, type DueToken } from './recheck.repository.js';

/**
 * Refreshes the tokens of connections in use before they end, so that no call waits for it, and the status shows an
 * authorization that has ended before a call does. TokenRefresherService makes sure that only one process refreshes a token.
 */
@Injectable()
export class ConnectionRefresher implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger('connections');
  private isEnding = false;

  constructor(
    private readonly repository: RecheckRepository,
    private readonly credentials: CredentialsService,
    private readonly checks: ConnectionCheck,
    private readonly schedule: Schedule,
  ) {}

  onApplicationBootstrap(): void {
    this.schedule.every('refresh of tokens', sweepPauseMs(), () => this.run());
  }

  onModuleDestroy(): void {
    this.isEnding = true;
  }

  /** Refreshes all tokens that are due, the earliest first. One that cannot be refreshed now holds up no other. */
  async run(): Promise<void> {
    let due: DueToken[] = [];
    do {
      due = await this.repository.dueTokens(due.at(-1) ?? null);
      await Promise.all(due.map((one) => this.attempt(one)));
    } while (due.length === REFRESH_BATCH && !this.isEnding);
  }

  private async attempt(one: DueToken): Promise<void> {
    try {
      await this.refresh(one);
    } catch (error) {
      const level = isDatabaseAway(error) ? 'debug' : 'error';
      this.logger[level]({ msg: 'a token could not be refreshed before its end', connectionId: one.id, err: error });
    }
  }

  private async refresh({ id, revision, upstreamUrl }: DueToken): Promise<void> {
    try {
      await this.credentials.accessToken({ kind: 'connection', id }, upstreamUrl);
    } catch (error) {
      const isKnown = error instanceof AuthorizationRequiredError || error instanceof CredentialUnavailableError;
      const status = isKnown ? statusAfter(error) : null;
      if (!status) throw error;
      await this.checks.record([{ id, revision }], status);
    }
  }
}
