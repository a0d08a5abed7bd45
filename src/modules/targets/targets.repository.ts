import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { PreparedStatement } from '../../platform/database/prepared-statement.js';
import { keyOf, type Target, type TargetName, type TargetRef } from './target.types.js';

const SELECT = `SELECT kind, id, namespace_id AS "namespaceId", namespace, name, title, owner_id AS "ownerId", visibility, suspended
  FROM targets`;
const BY_NAME = new PreparedStatement<Target>(`${SELECT} WHERE kind = $1 AND namespace = $2 AND key = $3`);
const BY_SLUG = new PreparedStatement<Target>(`${SELECT} WHERE kind = 'server' AND slug = $1`);
const BY_ID = new PreparedStatement<Target>(`${SELECT} WHERE kind = $1 AND id = $2`);

@Injectable()
export class TargetsRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  findByName(target: TargetName): Promise<Target | null> {
    return BY_NAME.findOne(this.database, [target.kind, target.namespace, keyOf(target)]);
  }

  /** @param slug in lower case */
  findBySlug(slug: string): Promise<Target | null> {
    return BY_SLUG.findOne(this.database, [slug]);
  }

  findById({ kind, id }: TargetRef): Promise<Target | null> {
    return BY_ID.findOne(this.database, [kind, id]);
  }

  findNamespaces(names: string[]): Promise<Target[]> {
    return this.database.query(`${SELECT} WHERE kind = 'namespace' AND namespace = ANY($1)`, [names]);
  }

  /** Lists the newest namespaces first. */
  async namesOf(accountIds: string[]): Promise<string[]> {
    const rows = await this.database.query<{ name: string }[]>(
      'SELECT name FROM namespaces WHERE account_id = ANY($1::uuid[]) ORDER BY created_at DESC',
      [accountIds],
    );
    return rows.map(({ name }) => name);
  }
}
