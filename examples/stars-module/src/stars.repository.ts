import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';

/** Counts the stars of servers. */
@Injectable()
export class StarsRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /** Counts the stars of each of these servers. @returns counts by server id, without those that have none */
  async countsOf(serverIds: string[]): Promise<Map<string, number>> {
    const rows = await this.database.query<{ id: string; count: number }[]>(
      'SELECT server_id AS id, count(*)::int AS count FROM stars WHERE server_id = ANY($1::uuid[]) GROUP BY server_id',
      [serverIds],
    );
    return new Map(rows.map(({ id, count }) => [id, count]));
  }
}
