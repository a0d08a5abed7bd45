import type { MigrationInterface, QueryRunner } from 'typeorm';

/** An index for the sweep of expired grants, of only those that expire. */
export class IndexGrantExpiries1795742000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('CREATE INDEX grants_expiry ON grants (expires_at) WHERE expires_at IS NOT NULL');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX grants_expiry');
  }
}
