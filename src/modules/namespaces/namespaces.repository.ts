import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager, type SelectQueryBuilder } from 'typeorm';
import { transactionOf, type Actor } from '../../platform/database/actor.js';
import { AccountQuotas } from '../auth/account-quota.decorator.js';
import type { Caller, OwnedNamespace } from '../auth/access.types.js';
import type { Suspension } from '../auth/suspension.types.js';
import { grantsWithinNamespaces } from '../auth/memberships.access.js';
import { listedFor } from '../auth/visible-servers.access.js';
import { Namespace } from './namespace.entity.js';

/** Conditions combined by AND; an absent condition does not restrict the result. */
export interface NamespaceFilter {
  accountIds?: string[];
  prefix?: string;
  ownerId?: string;
  hasServers?: boolean;
  /** The caller whose rights decide which servers are counted for `hasServers`. */
  viewer: Caller;
  hasSkills?: boolean;
}

@AccountQuotas({
  counts: { namespaces: 'SELECT count(*) FROM namespaces n WHERE n.account_id = a.id' },
  owners: { namespaceId: 'SELECT account_id FROM namespaces WHERE id = $1' },
})
@Injectable()
export class NamespacesRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /** @returns false if the namespace does not exist */
  async suspend(actor: Actor, name: string, suspended: Suspension | null): Promise<boolean> {
    const sql = 'UPDATE namespaces SET suspended = $2::jsonb WHERE name = $1 RETURNING id';
    const values = [name, suspended && JSON.stringify(suspended)];
    const [rows] = await transactionOf(this.database, actor, (tx) => tx.query<[unknown[]]>(sql, values));
    return rows.length > 0;
  }

  count(filter: NamespaceFilter): Promise<number> {
    return this.matching(filter).getCount();
  }

  /** Finds namespaces, sorted by name, or newest first. */
  find(
    filter: NamespaceFilter,
    { order, offset, limit }: { order: 'name' | 'newest'; offset: number; limit: number },
  ): Promise<Namespace[]> {
    const rows = this.matching(filter);
    if (order === 'name') rows.orderBy('namespace.name', 'ASC');
    else rows.orderBy('namespace.createdAt', 'DESC');
    return rows.addOrderBy('namespace.id').offset(offset).limit(limit).getMany();
  }

  /** @returns null when the name is taken */
  async insertIfFree(
    actor: Actor,
    name: string,
    accountId: string,
  ): Promise<Pick<Namespace, 'name' | 'createdAt'> | null> {
    const sql = `INSERT INTO namespaces (name, account_id) VALUES ($1, $2) ON CONFLICT DO NOTHING
                 RETURNING name, created_at AS "createdAt"`;
    const [row] = await transactionOf(this.database, actor, (tx) =>
      tx.query<Pick<Namespace, 'name' | 'createdAt'>[]>(sql, [name, accountId]),
    );
    return row ?? null;
  }

  /**
   * @param name one namespace of the account; null: all
   * @param check runs within the transaction, after the move
   * @returns null when the new account does not exist, or is disabled
   */
  move(
    actor: Actor,
    { from, to, name }: { from: string; to: string; name: string | null },
    check: (tx: EntityManager, moved: OwnedNamespace[]) => Promise<void>,
  ): Promise<OwnedNamespace[] | null> {
    return transactionOf(this.database, actor, async (tx) => {
      const [target] = await tx.query<unknown[]>(
        'SELECT 1 FROM accounts WHERE id = $1 AND disabled_at IS NULL FOR NO KEY UPDATE',
        [to],
      );
      if (!target) return null;
      const [moved] = await tx.query<[OwnedNamespace[]]>(
        `UPDATE namespaces SET account_id = $2 WHERE id IN (
           SELECT id FROM namespaces WHERE account_id = $1 AND ($3::text IS NULL OR name = $3) ORDER BY id FOR UPDATE)
         RETURNING id, name`,
        [from, to, name],
      );
      await check(tx, moved);
      return moved;
    });
  }

  /** Counts grants, including those of the servers and connections in the namespaces. */
  async countGrants(namespaceIds: string[]): Promise<number> {
    const [{ grants }] = await this.database.query<[{ grants: number }]>(
      `SELECT count(*)::integer AS grants FROM ${grantsWithinNamespaces} g WHERE g.namespace_id = ANY($1)`,
      [namespaceIds],
    );
    return grants;
  }

  private matching({
    accountIds,
    prefix,
    ownerId,
    hasServers,
    hasSkills,
    viewer,
  }: NamespaceFilter): SelectQueryBuilder<Namespace> {
    const rows = this.database.manager.createQueryBuilder(Namespace, 'namespace');
    if (accountIds !== undefined) rows.where('namespace.accountId IN (:...accountIds)', { accountIds });
    if (prefix !== undefined) rows.andWhere('starts_with(namespace.name, :prefix)', { prefix: prefix.toLowerCase() });
    if (ownerId !== undefined) rows.andWhere('namespace.accountId = :ownerId', { ownerId });
    // These tables belong to modules that import this one.
    const values: Record<string, unknown> = {};
    const add = (value: unknown) => {
      const name = `viewer${Object.keys(values).length}`;
      values[name] = value;
      return `:${name}`;
    };
    const visible = hasServers === undefined ? '' : ` AND ${listedFor('one', viewer, add)}`;
    rows.setParameters(values);
    for (const [table, isWanted, condition] of [
      ['servers', hasServers, visible],
      ['skills', hasSkills, ''],
    ] as const) {
      const exists = `EXISTS (SELECT 1 FROM ${table} one WHERE one.namespace_id = namespace.id${condition})`;
      if (isWanted !== undefined) rows.andWhere(isWanted ? exists : `NOT ${exists}`);
    }
    return rows;
  }
}
