import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { partitionOf } from './invocation-days.js';
import type { IndexedRange } from './search-ranges.js';

/** An old answer only makes a search slower. */
const AGE_MAX_MS = 10_000;

/** Names tell what an index covers, so that whoever reads needs nothing but the catalog. */
const EXISTING = `
  SELECT c.relname AS name, i.indisvalid AS "isValid" FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
   WHERE c.relname ~ '^invocations_[0-9]{8}_search_[0-9]+_[0-9]+$' AND pg_table_is_visible(c.oid)
   ORDER BY c.relname`;

/** An index of search as it is in the database. */
export interface SearchIndex extends IndexedRange {
  name: string;
  /** False: its build was cut off. */
  isValid: boolean;
}

/** The name of the index over a part of a day. */
export function searchIndexName(day: string, { from, to }: IndexedRange): string {
  return `${partitionOf(day)}_search_${from}_${to}`;
}

/** Knows which parts of the log have an index of search. */
@Injectable()
export class SearchIndexes {
  private known: Promise<SearchIndex[]> | null = null;
  private askedAt = -Infinity;

  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /** What can be used, up to 10 s old. */
  async ranges(): Promise<IndexedRange[]> {
    if (!this.known || performance.now() - this.askedAt > AGE_MAX_MS) {
      this.askedAt = performance.now();
      this.known = this.list();
    }
    try {
      return (await this.known).filter(({ isValid }) => isValid);
    } catch (error) {
      this.known = null;
      throw error;
    }
  }

  /** All of them, as they are now. */
  async list(): Promise<SearchIndex[]> {
    const rows = await this.database.query<{ name: string; isValid: boolean }[]>(EXISTING);
    return rows.map(({ name, isValid }) => {
      const [from, to] = name.split('_').slice(-2).map(Number);
      return { name, isValid, from, to };
    });
  }
}
