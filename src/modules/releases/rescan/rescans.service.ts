import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { Env } from '../../../config/env.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import { Vault } from '../../../platform/vault/vault.js';
import type { ServerSnapshot } from '../../servers/server.types.js';
import { CHECK_FAILED } from './server-rescan.entity.js';

/** While nothing is scanned by itself, times are kept as if it were once a day. */
const HOURS_WHEN_OFF = 24;

/** Up to a tenth sooner or later, so that what was published together is not scanned together for ever. */
const JITTER = 0.1;

/** The pause after a scan that failed, doubled with each that fails, to seven times the usual one. */
const FIRST_PAUSE_SECONDS = 3_600;
const PERIODS_MAX = 7;

/** When the current releases of servers are scanned again. */
@Injectable()
export class RescansService {
  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly pubSub: PubSub,
    private readonly vault: Vault,
    private readonly env: Env,
  ) {}

  /**
   * Begins anew with a release that becomes current: part of the transaction that makes it so, after the server's row was
   * locked. What was under way for another one counts no more.
   *
   * @param isChecked it was scanned just now. Otherwise a failed security check of the one before stands until a scan of
   * this one says better, which is due at once
   */
  async watch(serverId: string, snapshot: ServerSnapshot, isChecked: boolean, tx: EntityManager): Promise<void> {
    const stands = `NOT $4 AND r.told LIKE '${CHECK_FAILED}%'`;
    await tx.query(
      `INSERT INTO server_rescans AS r (server_id, upstream_url, next_at)
       VALUES ($1, $2, CASE WHEN $2::text IS NOT NULL THEN now() + $3 * interval '1 second' END)
       ON CONFLICT (server_id) DO UPDATE SET upstream_url = EXCLUDED.upstream_url,
         next_at = CASE WHEN $5 AND ${stands} THEN now() ELSE EXCLUDED.next_at END,
         told = CASE WHEN ${stands} THEN '${CHECK_FAILED}of another release' END,
         asked_at = NULL, sealed_credentials = NULL, holder = NULL, failures = 0`,
      [serverId, watchedUrl(snapshot), this.pauseSeconds(0), isChecked, isScannable(snapshot)],
    );
  }

  /**
   * Asks for a scan of a server's current release, as soon as a worker has a hand free. One that is under way is followed
   * by another one, since it may have begun before what whoever asks wants to see.
   *
   * @param credentials for this scan only
   * @returns false when the release is not the current one
   */
  async ask(serverId: string, releaseId: string, credentials?: Record<string, string>): Promise<boolean> {
    const sealed = credentials === undefined ? null : this.vault.seal(JSON.stringify(credentials), releaseId);
    const rows = await this.database.query<unknown[]>(
      `INSERT INTO server_rescans AS r (server_id, next_at, asked_at, sealed_credentials)
       SELECT id, now(), now(), $3 FROM servers WHERE id = $1 AND current_release_id = $2
       ON CONFLICT (server_id) DO UPDATE SET asked_at = now(),
         sealed_credentials = COALESCE(EXCLUDED.sealed_credentials, r.sealed_credentials),
         next_at = CASE WHEN r.holder IS NOT NULL AND r.next_at > now() THEN r.next_at ELSE now() END
       RETURNING server_id`,
      [serverId, releaseId, sealed],
    );
    if (rows.length === 0) return false;
    this.pubSub.publish('releases.rescan', {});
    return true;
  }

  /** How long until the next scan. @param failures how many in a row found nothing out */
  pauseSeconds(failures: number): number {
    const period = (this.env.releaseRescanHours || HOURS_WHEN_OFF) * 3_600;
    const pause = failures === 0 ? period : FIRST_PAUSE_SECONDS * 2 ** Math.min(failures - 1, 16);
    return Math.min(pause, PERIODS_MAX * period) * (1 - JITTER + 2 * JITTER * Math.random());
  }
}

/** What can be scanned with nothing but what we have. */
function isScannable({ type, hadCredentials = false }: ServerSnapshot): boolean {
  return type !== 'stdio' && !hadCredentials;
}

/** What runs here changes only with a release, and what was scanned with forgotten credentials cannot be seen without. */
function watchedUrl({ type, upstreamUrl, hadCredentials = false }: ServerSnapshot): string | null {
  return type === 'external_shttp' && !hadCredentials ? upstreamUrl : null;
}
