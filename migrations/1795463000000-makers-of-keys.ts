import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The keys by which a key was made. Without foreign keys: they stay known when they are revoked. */
export class MakersOfKeys1795463000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE api_keys ADD COLUMN made_by uuid[] NOT NULL DEFAULT '{}'`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE api_keys DROP COLUMN made_by');
  }
}
