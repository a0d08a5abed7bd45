import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';

/** Files that might be unused, in a list that a trigger on `release_artifacts` fills. */
@Injectable()
export class BlobsRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /** Locks a file until the transaction ends, so that it is not removed while a release that names it is stored. */
  async lock(hash: string, tx: EntityManager): Promise<void> {
    await tx.query(`SELECT pg_advisory_xact_lock(hashtextextended('blob ' || $1, 0))`, [hash]);
  }

  async isNamed(hash: string, tx: EntityManager): Promise<boolean> {
    const rows = await tx.query<object[]>('SELECT 1 FROM release_artifacts WHERE hash = $1 LIMIT 1', [hash]);
    return rows.length > 0;
  }

  async findGarbage(limit: number): Promise<string[]> {
    const rows = await this.database.query<{ hash: string }[]>('SELECT hash FROM blob_garbage LIMIT $1', [limit]);
    return rows.map(({ hash }) => hash);
  }

  async addGarbage(hashes: string[]): Promise<void> {
    const sql = 'INSERT INTO blob_garbage SELECT unnest($1::text[]) ON CONFLICT DO NOTHING';
    await this.database.query(sql, [[...new Set(hashes)]]);
  }

  async removeGarbage(hash: string): Promise<void> {
    await this.database.query('DELETE FROM blob_garbage WHERE hash = $1', [hash]);
  }
}

export async function namedBlobs(database: Pick<DataSource, 'query'>): Promise<string[]> {
  const rows = await database.query<{ hash: string }[]>('SELECT DISTINCT hash FROM release_artifacts ORDER BY hash');
  return rows.map(({ hash }) => hash);
}
