import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type SelectQueryBuilder } from 'typeorm';
import { AccountQuotas } from '../auth/account-quota.decorator.js';
import { PreparedStatement } from '../../platform/database/prepared-statement.js';
import type { Caller } from '../auth/access.types.js';
import { visibleTo } from '../auth/visible-servers.access.js';
import { Namespace } from './namespace.entity.js';

/** Conditions that all hold; an absent one restricts nothing. */
export interface NamespaceFilter {
  accountId?: string;
  /** Beginning of the name. */
  prefix?: string;
  ownerId?: string;
  hasServers?: boolean;
  /** Whose view of the servers `hasServers` means. */
  viewer: Caller;
  hasSkills?: boolean;
}

const OWNER_BY_NAME = new PreparedStatement<{ id: string; accountId: string }>(
  `SELECT id, account_id AS "accountId" FROM namespaces WHERE name = $1`,
);

/** Statements that search and claim namespaces. */
@AccountQuotas({
  counts: { namespaces: 'SELECT count(*) FROM namespaces n WHERE n.account_id = a.id' },
  owners: { namespaceId: 'SELECT account_id FROM namespaces WHERE id = $1' },
})
@Injectable()
export class NamespacesRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /** The id and owner of a namespace; null when there is none. */
  findOwner(name: string): Promise<{ id: string; accountId: string } | null> {
    return OWNER_BY_NAME.findOne(this.database, [name]);
  }

  /** Number of namespaces that match. */
  count(filter: NamespaceFilter): Promise<number> {
    return this.matching(filter).getCount();
  }

  /** One page of the namespaces that match: by name, or newest first. */
  find(
    filter: NamespaceFilter,
    { order, offset, limit }: { order: 'name' | 'newest'; offset: number; limit: number },
  ): Promise<Namespace[]> {
    const rows = this.matching(filter);
    if (order === 'name') rows.orderBy('namespace.name', 'ASC');
    else rows.orderBy('namespace.createdAt', 'DESC');
    return rows.addOrderBy('namespace.id').offset(offset).limit(limit).getMany();
  }

  /** Inserts a namespace. @returns null when its name is taken */
  async insertIfFree(name: string, accountId: string): Promise<Pick<Namespace, 'name' | 'createdAt'> | null> {
    const { raw } = (await this.database.manager
      .createQueryBuilder()
      .insert()
      .into(Namespace)
      .values({ name, accountId })
      .orIgnore()
      .returning(['createdAt'])
      .execute()) as { raw: { created_at: Date }[] };
    const [row] = raw;
    return row ? { name, createdAt: row.created_at } : null;
  }

  private matching({
    accountId,
    prefix,
    ownerId,
    hasServers,
    hasSkills,
    viewer,
  }: NamespaceFilter): SelectQueryBuilder<Namespace> {
    const rows = this.database.manager.createQueryBuilder(Namespace, 'namespace');
    if (accountId !== undefined) rows.where('namespace.accountId = :accountId', { accountId });
    if (prefix !== undefined) rows.andWhere('starts_with(namespace.name, :prefix)', { prefix: prefix.toLowerCase() });
    if (ownerId !== undefined) rows.andWhere('namespace.accountId = :ownerId', { ownerId });
    // Tables of modules that import this one, so they are named in SQL instead of imported.
    const values: Record<string, unknown> = {};
    const add = (value: unknown) => {
      const name = `viewer${Object.keys(values).length}`;
      values[name] = value;
      return `:${name}`;
    };
    const visible = hasServers === undefined ? '' : ` AND ${visibleTo('one', viewer, add)}`;
    rows.setParameters(values);
    for (const [table, wanted, condition] of [
      ['servers', hasServers, visible],
      ['skills', hasSkills, ''],
    ] as const) {
      const exists = `EXISTS (SELECT 1 FROM ${table} one WHERE one.namespace_id = namespace.id${condition})`;
      if (wanted !== undefined) rows.andWhere(wanted ? exists : `NOT ${exists}`);
    }
    return rows;
  }
}
