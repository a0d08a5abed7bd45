import { Injectable, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { transactionOf, type Actor } from '../../platform/database/actor.js';
import type { AccountLimitName, AccountLimits } from '../../config/account-limits.js';
import { OVERRIDES } from './account-limits.access.js';
import { AccountQuotas, type QuotaOwner } from './account-quota.decorator.js';

export interface StoredUsage {
  accountId: string;
  overrides: Partial<AccountLimits> | null;
  used: Partial<AccountLimits>;
}

const LOG_BYTES_TODAY = `SELECT coalesce(sum(bytes), 0)::float8 AS bytes FROM account_log_days
  WHERE day = (now() AT TIME ZONE 'UTC')::date`;

/** The number of programs is that of the process that runs the most, by its last heartbeat. */
@AccountQuotas({
  counts: {
    organizations: `SELECT count(*) FROM memberships m WHERE m.account_id = a.id AND m.role = 'owner'`,
    apiKeys: 'SELECT count(*) FROM api_keys k WHERE k.account_id = a.id',
    logBytesPerDay: `SELECT coalesce(sum(d.bytes), 0) FROM account_log_days d
      WHERE d.account_id = a.id AND d.day = (now() AT TIME ZONE 'UTC')::date`,
    livePrograms: `SELECT coalesce(max((p.details->'livePrograms'->>a.id::text)::int), 0) FROM processes p
      WHERE p.lease_until > now()`,
  },
  owners: { accountId: 'SELECT $1::uuid' },
})
@Injectable()
export class AccountLimitsRepository implements OnModuleInit {
  private readonly counts = new Map<AccountLimitName, string>();
  private readonly owners = new Map<string, string>();

  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly discoveryService: DiscoveryService,
  ) {}

  onModuleInit(): void {
    for (const provider of this.discoveryService.getProviders({ metadataKey: AccountQuotas.KEY })) {
      const { counts = {}, owners = {} } = this.discoveryService.getMetadataByDecorator(AccountQuotas, provider) ?? {};
      for (const [name, sql] of Object.entries(counts)) this.counts.set(name as AccountLimitName, sql);
      for (const [kind, sql] of Object.entries(owners)) this.owners.set(kind, sql);
    }
  }

  get accountQuotas(): AccountLimitName[] {
    return [...this.counts.keys()].filter((name) => !name.endsWith('PerNamespace'));
  }

  /** @returns null when the account or the owned record does not exist */
  async usage(
    owner: QuotaOwner,
    names: readonly AccountLimitName[],
    within: Pick<EntityManager, 'query'> = this.database,
  ): Promise<StoredUsage | null> {
    const [[kind, id]] = Object.entries(owner) as [[string, string]];
    const columns = names.map((name) => `, (${this.counts.get(name)})::float8 AS "${name}"`).join('');
    const [row] = await within.query<({ accountId: string; overrides: Partial<AccountLimits> | null } & object)[]>(
      `SELECT a.id AS "accountId", ${OVERRIDES} ${columns}
         FROM accounts a
        WHERE a.id = (${this.owners.get(kind)})`,
      [id],
    );
    if (!row) return null;
    const { accountId, overrides, ...used } = row;
    return { accountId, overrides, used };
  }

  async logBytesToday(): Promise<number> {
    const [{ bytes }] = await this.database.query<[{ bytes: number }]>(LOG_BYTES_TODAY);
    return bytes;
  }

  /** Sets limits; null resets a limit to its default. */
  async set(actor: Actor, accountId: string, changes: Partial<Record<AccountLimitName, number | null>>): Promise<void> {
    const names = Object.keys(changes);
    const sql = `WITH change AS (SELECT * FROM unnest($2::text[], $3::bigint[]) AS change(name, value)),
            reset AS (DELETE FROM account_limits l USING change c
                       WHERE l.account_id = $1 AND l.name = c.name AND c.value IS NULL)
       INSERT INTO account_limits SELECT $1, name, value FROM change WHERE value IS NOT NULL
           ON CONFLICT (account_id, name) DO UPDATE SET value = excluded.value`;
    await transactionOf(this.database, actor, (tx) => tx.query(sql, [accountId, names, Object.values(changes)]));
  }
}
