import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The number of invocations of each hour that were not stored, because their account had written its share of the log. */
export class LeftOutInvocations1795428000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE invocation_hours ADD COLUMN left_out integer NOT NULL DEFAULT 0');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE invocation_hours DROP COLUMN left_out');
  }
}
