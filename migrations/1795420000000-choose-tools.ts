import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The tools that a connection offers; null for all. */
export class ChooseTools1795420000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE connections ADD tools jsonb');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE connections DROP COLUMN tools');
  }
}
