import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The sweep of expired grants reads those that expire, and no others. */
export class IndexGrantExpiries1795742000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('CREATE INDEX grants_expiry ON grants (expires_at) WHERE expires_at IS NOT NULL');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX grants_expiry');
  }
}
