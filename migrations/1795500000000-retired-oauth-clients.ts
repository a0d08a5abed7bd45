import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * A registered OAuth client that its server seems to have forgotten is replaced by a new one, and is kept for
 * refreshes.
 */
export class RetiredOauthClients1795500000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE oauth_clients ADD retired_at timestamptz(3)`);
    await runner.query(`DROP INDEX oauth_clients_issuer`);
    await runner.query(
      `CREATE UNIQUE INDEX oauth_clients_issuer ON oauth_clients (issuer, redirect_uri)
        WHERE owner_id IS NULL AND retired_at IS NULL`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DELETE FROM oauth_clients WHERE retired_at IS NOT NULL`);
    await runner.query(`DROP INDEX oauth_clients_issuer`);
    await runner.query(
      `CREATE UNIQUE INDEX oauth_clients_issuer ON oauth_clients (issuer, redirect_uri) WHERE owner_id IS NULL`,
    );
    await runner.query(`ALTER TABLE oauth_clients DROP COLUMN retired_at`);
  }
}
