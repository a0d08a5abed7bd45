import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { DAY_MS, dayOf } from './invocation-days.js';

/** Days go once a day, and one that is gone has nothing to find. */
const KNOWN_MS_MAX = 10_000;

/** How far the log goes back. */
@Injectable()
export class LogRetention {
  private known: Promise<string | null> | null = null;
  private readAt = -Infinity;

  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /** The oldest day something can be kept under: records are taken for a day back, and make its table. */
  async oldest(): Promise<string> {
    const yesterday = dayOf(Date.now() - DAY_MS);
    const known = await this.oldestTable();
    return known !== null && known < yesterday ? known : yesterday;
  }

  private async oldestTable(): Promise<string | null> {
    if (!this.known || performance.now() - this.readAt > KNOWN_MS_MAX) {
      this.readAt = performance.now();
      this.known = this.read();
    }
    try {
      return await this.known;
    } catch (error) {
      this.known = null;
      throw error;
    }
  }

  private async read(): Promise<string | null> {
    const [row] = await this.database.query<{ day: string | null }[]>(
      `SELECT to_char(to_date(min(right(c.relname, 8)), 'YYYYMMDD'), 'YYYY-MM-DD') AS day
         FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'invocations'::regclass AND c.relname ~ '^invocations_[0-9]{8}$'`,
    );
    return row?.day ?? null;
  }
}
