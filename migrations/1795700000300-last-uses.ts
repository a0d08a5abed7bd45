import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The last call of each account to each connection and server. */
export class LastUses1795700000300 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`CREATE TABLE last_uses (
      account_id uuid NOT NULL CONSTRAINT last_uses_account_fk REFERENCES accounts (id) ON DELETE CASCADE,
      target_id uuid NOT NULL,
      connection_id uuid CONSTRAINT last_uses_connection_fk REFERENCES connections (id) ON DELETE CASCADE,
      server_id uuid CONSTRAINT last_uses_server_fk REFERENCES servers (id) ON DELETE CASCADE,
      at timestamptz(3) NOT NULL,
      kind text NOT NULL,
      credential_id uuid NOT NULL,
      client text,
      PRIMARY KEY (account_id, target_id),
      CONSTRAINT last_uses_target CHECK (num_nonnulls(connection_id, server_id) = 1))`);
    await runner.query(`CREATE INDEX last_uses_connection ON last_uses (connection_id)`);
    await runner.query(`CREATE INDEX last_uses_server ON last_uses (server_id)`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP TABLE last_uses`);
  }
}
