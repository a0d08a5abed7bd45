import { randomInt } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import type { AccountsQueryDto, ListedAccountDto } from './account.dto.js';
import { isImitation, storeSkeletons } from './names/account-names.repository.js';
import { toSkeletons } from './names/name-skeletons.js';

type Filter = Pick<AccountsQueryDto, 'q' | 'kind'>;

const MATCHES = `strpos(lower(a.name), lower($1)) > 0 AND ($2::text IS NULL OR a.kind = $2)`;

const SIGN_IN = `CASE WHEN p.password_hash IS NOT NULL THEN 'password'
  WHEN EXISTS (SELECT FROM identities WHERE account_id = a.id) THEN 'identity'
  WHEN EXISTS (SELECT 1 FROM invitations i WHERE i.account_id = a.id AND i.role IS NULL AND i.used_at IS NULL AND i.expires_at > now())
    THEN 'invited' ELSE 'none' END`;

const LAST_SEEN = `greatest((SELECT max(last_used_at) FROM sessions WHERE account_id = a.id),
  (SELECT max(last_used_at) FROM api_keys WHERE account_id = a.id))`;

const NUMBERS_MAX = 20;

@Injectable()
export class AccountsRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  async list({ q = '', kind }: Filter, limit: number, offset: number): Promise<ListedAccountDto[]> {
    const rows = await this.database.query<(ListedAccountDto & { createdAt: Date; lastSeenAt: Date | null })[]>(
      `SELECT a.id, a.name, a.kind, a.is_operator AS "isOperator", a.disabled_at IS NOT NULL AS disabled, a.created_at AS "createdAt",
              a.time_zone AS "timeZone",
              'Since ' || to_char(a.credentials_suspended_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI UTC: ') || a.credentials_suspended_for AS suspended,
              ${SIGN_IN} AS "signIn", ${LAST_SEEN} AS "lastSeenAt"
         FROM accounts a LEFT JOIN people p ON p.account_id = a.id WHERE ${MATCHES}
        ORDER BY a.created_at DESC, a.id DESC LIMIT $3 OFFSET $4`,
      [q, kind ?? null, limit, offset],
    );
    return rows.map(({ createdAt, lastSeenAt, ...row }) => ({
      ...row,
      createdAt: createdAt.toISOString(),
      lastSeenAt: lastSeenAt?.toISOString() ?? null,
    }));
  }

  async count({ q = '', kind }: Filter): Promise<number> {
    const [{ count }] = await this.database.query<[{ count: number }]>(
      `SELECT count(*)::int AS count FROM accounts a WHERE ${MATCHES}`,
      [q, kind ?? null],
    );
    return count;
  }

  /** Appends a number if the name, or one that looks like it, is taken. */
  async addPerson(name: string, tx: EntityManager): Promise<string> {
    await storeSkeletons(this.database);
    for (let number = 1; ; number += 1) {
      const suffix = number === 1 ? '' : `-${number <= NUMBERS_MAX ? number : randomInt(2 ** 40)}`;
      const skeletons = toSkeletons(name + suffix);
      if (await isImitation(tx, name + suffix, skeletons)) continue;
      const [added] = await tx.query<{ id: string }[]>(
        `INSERT INTO accounts (name, name_skeletons, kind) VALUES ($1, $2, 'user') ON CONFLICT (name) DO NOTHING RETURNING id`,
        [name + suffix, skeletons],
      );
      if (added) return added.id;
    }
  }
}
