import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';

/** Writes accounts and API keys with statements of their own; also used before Nest runs. */
@Injectable()
export class ApiKeysRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /** Creates the operator's account in a database without accounts. @returns false when there is an account */
  async createOperator(name: string): Promise<boolean> {
    const created = await this.database.query<unknown[]>(
      `INSERT INTO accounts (name, kind, is_operator) SELECT $1, 'user', true
        WHERE NOT EXISTS (SELECT 1 FROM accounts) RETURNING id`,
      [name],
    );
    return created.length > 0;
  }

  /** Adds a key to an account, by the account's name. @returns false without the account, or when the key exists */
  async addKey(
    account: string,
    { name, prefix, hash }: { name: string; prefix: string; hash: Buffer },
  ): Promise<boolean> {
    const created = await this.database.query<unknown[]>(
      `INSERT INTO api_keys (account_id, name, prefix, hash) SELECT id, $1, $2, $3 FROM accounts WHERE name = $4
       ON CONFLICT (hash) DO NOTHING RETURNING id`,
      [name, prefix, hash, account],
    );
    return created.length > 0;
  }

  /** Sets the time of the last use of keys, by id. */
  async saveLastUsed(usedAt: Map<string, Date>): Promise<void> {
    await this.database.query(
      `UPDATE api_keys SET last_used_at = used.at
         FROM unnest($1::uuid[], $2::timestamptz[]) AS used(id, at)
        WHERE api_keys.id = used.id`,
      [[...usedAt.keys()], [...usedAt.values()]],
    );
  }
}
