import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The number of invocations of each server by hour since 1970, of their ids, for `total` of its log. */
export class InvocationHours1795415000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `CREATE TABLE invocation_hours (
         server_id uuid NOT NULL,
         hour integer NOT NULL,
         invocations integer NOT NULL,
         CONSTRAINT invocation_hours_pkey PRIMARY KEY (server_id, hour)
       )`,
    );
    await runner.query(
      `INSERT INTO invocation_hours
       SELECT server_id, ('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint / 3600000 AS hour, count(*)
         FROM invocations WHERE server_id IS NOT NULL GROUP BY 1, 2`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE invocation_hours');
  }
}
