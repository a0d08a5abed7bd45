import { Injectable, Logger } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { isDatabaseAway } from '../../../platform/database/database-outage.js';
import { AuthorizationRequiredError, CredentialUnavailableError } from '../../oauth/credentials.errors.js';
import { CredentialsService } from '../../oauth/credentials.service.js';
import { ConnectionCheck, type Looked } from './connection-check.js';
import { Connection } from '../core/connection.entity.js';
import { statusAfter } from '../core/connection-status.js';

/** Tokens renewed in one go; the next go follows at once while there are more. */
const REFRESH_BATCH = 20;

/** A token whose time has come. */
export interface Due extends Looked {
  upstreamUrl: string;
  dueAt: Date;
}

/**
 * Renews the tokens of connections in use ahead of their end, so that no call waits for it, and an authorization that has
 * ended stands in the status before anybody calls. Once for all processes: the refresher of credentials sees to that.
 */
@Injectable()
export class ConnectionRefresher {
  private readonly logger = new Logger('connections');

  constructor(
    @InjectRepository(Connection) private readonly connections: Repository<Connection>,
    private readonly credentials: CredentialsService,
    private readonly checks: ConnectionCheck,
  ) {}

  /**
   * Renews a batch: the tokens that are due longest, behind `after`, so that one that cannot be renewed now keeps no other
   * waiting.
   *
   * @returns the last of it; null when there are no more
   */
  async run(after: Due | null = null): Promise<Due | null> {
    const due = await this.due(after);
    await Promise.all(due.map((one) => this.attempt(one)));
    return due.length === REFRESH_BATCH ? (due.at(-1) ?? null) : null;
  }

  /**
   * Tokens that are due, of connections that worked within the last 24 hours. Older dues are of connections nobody uses,
   * since a call would have renewed them. A row that is held is being refreshed by somebody else at this moment. The table
   * is asked by name, since it belongs to another module.
   */
  private due(after: Due | null): Promise<Due[]> {
    return this.connections.query<Due[]>(
      `SELECT c.id, c.revision, u.upstream_url AS "upstreamUrl", u.due_at AS "dueAt"
         FROM upstream_credentials u JOIN connections c ON c.id = u.owner_id
        WHERE u.owner_kind = 'connection' AND u.state = 'active'
          AND u.due_at <= now() AND u.due_at > now() - interval '25 hours'
          AND (u.retry_at IS NULL OR u.retry_at <= now())
          AND c.last_ok_at > now() - interval '24 hours'
          AND ($1::timestamptz IS NULL OR (u.due_at, c.id) > ($1, $2::uuid))
        ORDER BY u.due_at, c.id LIMIT ${REFRESH_BATCH} FOR UPDATE OF u SKIP LOCKED`,
      [after?.dueAt ?? null, after?.id ?? null],
    );
  }

  private async attempt(one: Due): Promise<void> {
    try {
      await this.refresh(one);
    } catch (error) {
      const level = isDatabaseAway(error) ? 'debug' : 'error';
      this.logger[level]({ msg: 'a token could not be renewed ahead of its end', connectionId: one.id, err: error });
    }
  }

  private async refresh({ id, revision, upstreamUrl }: Due): Promise<void> {
    try {
      await this.credentials.accessToken({ kind: 'connection', id }, upstreamUrl);
    } catch (error) {
      const isKnown = error instanceof AuthorizationRequiredError || error instanceof CredentialUnavailableError;
      const status = isKnown ? statusAfter(error) : null;
      if (!status) throw error;
      await this.checks.found([{ id, revision }], status);
    }
  }
}
