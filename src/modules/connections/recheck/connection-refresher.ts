import { Injectable, Logger } from '@nestjs/common';
import { isDatabaseAway } from '../../../platform/database/database-outage.js';
import { AuthorizationRequiredError, CredentialUnavailableError } from '../../oauth/credentials.errors.js';
import { CredentialsService } from '../../oauth/credentials.service.js';
import { statusAfter } from '../core/connection-status.js';
import { ConnectionCheck } from './connection-check.js';
import { RecheckRepository, REFRESH_BATCH, type DueToken } from './recheck.repository.js';

/**
 * Refreshes the tokens of connections in use before they end, so that no call waits for it, and the status shows an
 * authorization that has ended before a call does. TokenRefresherService makes sure that only one process refreshes a token.
 */
@Injectable()
export class ConnectionRefresher {
  private readonly logger = new Logger('connections');

  constructor(
    private readonly repository: RecheckRepository,
    private readonly credentials: CredentialsService,
    private readonly checks: ConnectionCheck,
  ) {}

  /**
   * Refreshes a batch: the tokens that are due longest, behind `after`, so that a token that cannot be refreshed now holds
   * up no other.
   *
   * @returns the last of the batch; null if there are no more
   */
  async run(after: DueToken | null = null): Promise<DueToken | null> {
    const due = await this.repository.dueTokens(after);
    await Promise.all(due.map((one) => this.attempt(one)));
    return due.length === REFRESH_BATCH ? (due.at(-1) ?? null) : null;
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
