import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The configSchema of a release is stored as its publisher ordered it: `jsonb` sorts the members of objects. */
export class KeepConfigOrder1795390000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE releases ALTER COLUMN config_schema TYPE json');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE releases ALTER COLUMN config_schema TYPE jsonb');
  }
}
