import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The sweep of expired grants reads those that expire, and no others. */
export class IndexGrantExpiries1795742000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    // Grants change while processes of the earlier version run: the start fails instead of blocking them behind a long transaction.
    await runner.query(`SET LOCAL lock_timeout = '5s'`);
    await runner.query('CREATE INDEX grants_expiry ON grants (expires_at) WHERE expires_at IS NOT NULL');
    await runner.query('SET LOCAL lock_timeout = 0');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX grants_expiry');
  }
}
