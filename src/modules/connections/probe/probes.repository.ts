import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';

export interface ProbeCounts {
  running: number;
  minute: number;
  day: number;
}

@Injectable()
export class ProbesRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /**
   * @param runningMsMax age from which an unfinished probe is not counted as running
   * @returns the id of the new probe; the counts without it if a limit is reached
   */
  begin(accountId: string, max: ProbeCounts, runningMsMax: number): Promise<string | ProbeCounts> {
    return this.database.transaction(async (tx) => {
      // Locks the account, so that concurrent probes count each other.
      await tx.query('SELECT 1 FROM accounts WHERE id = $1 FOR NO KEY UPDATE', [accountId]);
      const [counts] = await tx.query<[ProbeCounts]>(
        `SELECT count(*)::int AS day,
            count(*) FILTER (WHERE started_at > clock_timestamp() - interval '1 minute')::int AS minute,
            count(*) FILTER (WHERE ended_at IS NULL AND started_at > clock_timestamp() - $2 * interval '1 ms')::int AS running
           FROM probes WHERE account_id = $1 AND started_at > clock_timestamp() - interval '1 day'`,
        [accountId, runningMsMax],
      );
      if (counts.running >= max.running || counts.minute >= max.minute || counts.day >= max.day) return counts;
      await tx.query(
        `DELETE FROM probes WHERE id IN
           (SELECT id FROM probes WHERE account_id = $1 ORDER BY started_at DESC, id OFFSET $2)`,
        [accountId, max.day - 1],
      );
      const [{ id }] = await tx.query<[{ id: string }]>(
        'INSERT INTO probes (account_id, started_at) VALUES ($1, clock_timestamp()) RETURNING id',
        [accountId],
      );
      return id;
    });
  }

  async markEnded(id: string): Promise<void> {
    await this.database.query('UPDATE probes SET ended_at = now() WHERE id = $1', [id]);
  }
}
