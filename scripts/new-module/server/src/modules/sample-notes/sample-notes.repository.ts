import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import type { Caller } from '../auth/access.types.js';
import { visibleTo } from '../auth/visible-servers.access.js';

/** A sample note, and the names of its server. */
export interface SampleNoteRow {
  namespace: string;
  name: string;
  createdAt: Date;
}

/** The caller's sample notes. Its server may have become private since: `visibleTo` leaves out what the caller may not find. */
function ofCaller(caller: Caller): { from: string; values: unknown[] } {
  const values: unknown[] = [caller.accountId];
  const visible = visibleTo('s', caller, (value) => `$${values.push(value)}`);
  const from = `sample_notes x JOIN servers s ON s.id = x.server_id JOIN namespaces n ON n.id = s.namespace_id
    WHERE x.account_id = $1 AND ${visible}`;
  return { from, values };
}

/** Reads sample notes of servers with statements of its own. */
@Injectable()
export class SampleNotesRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /** Counts the sample notes of each of these servers. @returns counts by server id, without those that have none */
  async countsOf(serverIds: string[]): Promise<Map<string, number>> {
    const rows = await this.database.query<{ id: string; count: number }[]>(
      `SELECT server_id AS id, count(*)::int AS count FROM sample_notes
        WHERE server_id = ANY($1::uuid[]) GROUP BY server_id`,
      [serverIds],
    );
    return new Map(rows.map(({ id, count }) => [id, count]));
  }

  /** Number of the caller's sample notes on servers that it may find. */
  async countOf(caller: Caller): Promise<number> {
    const { from, values } = ofCaller(caller);
    const [row] = await this.database.query<{ count: number }[]>(`SELECT count(*)::int AS count FROM ${from}`, values);
    return row?.count ?? 0;
  }

  /** A page of the caller's sample notes on servers that it may find, newest first. */
  pageOf(caller: Caller, offset: number, limit: number): Promise<SampleNoteRow[]> {
    const { from, values } = ofCaller(caller);
    const order = `ORDER BY x.created_at DESC, x.server_id OFFSET $${values.push(offset)} LIMIT $${values.push(limit)}`;
    return this.database.query<SampleNoteRow[]>(
      `SELECT n.name AS namespace, s.name, x.created_at AS "createdAt" FROM ${from} ${order}`,
      values,
    );
  }
}
