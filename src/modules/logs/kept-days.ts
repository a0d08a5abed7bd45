import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { DAY_MS, dayOf } from './invocation-days.js';

/** Days come and go once a day, and an index that is not known of yet costs time, no truth. */
const KNOWN_MS_MAX = 10_000;

interface Days {
  oldest: string;
  indexed: ReadonlySet<string>;
}

/** Which days of the log there are, and which of them have an index over all their texts. At most 10 s old. */
@Injectable()
export class KeptDays {
  private known: Promise<Days> | null = null;
  private readAt = -Infinity;

  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /** The oldest day something can be kept under: records are taken for a day back, and make its table. */
  async oldest(): Promise<string> {
    const { oldest } = await this.days();
    const yesterday = dayOf(Date.now() - DAY_MS);
    return oldest < yesterday ? oldest : yesterday;
  }

  async indexed(): Promise<ReadonlySet<string>> {
    return (await this.days()).indexed;
  }

  private days(): Promise<Days> {
    if (this.known && performance.now() - this.readAt < KNOWN_MS_MAX) return this.known;
    this.readAt = performance.now();
    const reading = this.read();
    this.known = reading;
    reading.catch(() => {
      if (this.known === reading) this.known = null;
    });
    return reading;
  }

  private async read(): Promise<Days> {
    const rows = await this.database.query<{ day: string; isIndexed: boolean }[]>(
      `SELECT to_char(to_date(right(c.relname, 8), 'YYYYMMDD'), 'YYYY-MM-DD') AS day,
              EXISTS (SELECT FROM pg_index i JOIN pg_class ic ON ic.oid = i.indexrelid JOIN pg_am a ON a.oid = ic.relam
                       WHERE i.indrelid = c.oid AND a.amname = 'gin' AND i.indisvalid AND i.indpred IS NULL) AS "isIndexed"
         FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhrelid
        WHERE h.inhparent = 'invocations'::regclass AND c.relname ~ '_[0-9]{8}$' ORDER BY day`,
    );
    return {
      oldest: rows[0]?.day ?? dayOf(Date.now()),
      indexed: new Set(rows.filter(({ isIndexed }) => isIndexed).map(({ day }) => day)),
    };
  }
}
