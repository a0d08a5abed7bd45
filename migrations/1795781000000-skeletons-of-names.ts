import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The skeletons of the names of accounts. The service stores those of existing accounts at its start: SQL cannot compute them. */
export class SkeletonsOfNames1795781000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE accounts ADD name_skeletons text[]');
    await runner.query('CREATE INDEX accounts_name_skeletons ON accounts USING gin (name_skeletons)');
    await runner.query('CREATE INDEX accounts_without_skeletons ON accounts (id) WHERE name_skeletons IS NULL');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE accounts DROP COLUMN name_skeletons');
  }
}
