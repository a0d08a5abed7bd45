import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Time zones in which the pages show times, by account. */
export class TimeZones1795782000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE accounts ADD time_zone text');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE accounts DROP COLUMN time_zone');
  }
}
