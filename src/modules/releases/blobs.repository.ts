import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';

/** Locks of stored files, and the table of files that may be unused. A trigger on `release_artifacts` fills the table. */
@Injectable()
export class BlobsRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /** Locks a file until the transaction ends: it is not removed while a release that names it is stored. */
  async lock(hash: string, tx: EntityManager): Promise<void> {
    await tx.query(`SELECT pg_advisory_xact_lock(hashtextextended('blob ' || $1, 0))`, [hash]);
  }

  /** True if a release names the file. */
  async isNamed(hash: string, tx: EntityManager): Promise<boolean> {
    const rows = await tx.query<object[]>('SELECT 1 FROM release_artifacts WHERE hash = $1 LIMIT 1', [hash]);
    return rows.length > 0;
  }

  /** Hashes of files that may be unused. */
  async findGarbage(limit: number): Promise<string[]> {
    const rows = await this.database.query<{ hash: string }[]>('SELECT hash FROM blob_garbage LIMIT $1', [limit]);
    return rows.map(({ hash }) => hash);
  }

  /** Marks files as possibly unused. */
  async addGarbage(hashes: string[]): Promise<void> {
    const sql = 'INSERT INTO blob_garbage SELECT unnest($1::text[]) ON CONFLICT DO NOTHING';
    await this.database.query(sql, [[...new Set(hashes)]]);
  }

  /** Removes the mark of {@link addGarbage}. */
  async removeGarbage(hash: string): Promise<void> {
    await this.database.query('DELETE FROM blob_garbage WHERE hash = $1', [hash]);
  }
}

/** Hashes of the files that rows name. */
export async function namedBlobs(database: Pick<DataSource, 'query'>): Promise<string[]> {
  const rows = await database.query<{ hash: string }[]>('SELECT DISTINCT hash FROM release_artifacts ORDER BY hash');
  return rows.map(({ hash }) => hash);
}
