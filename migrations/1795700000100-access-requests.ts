import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Accounts ask the owner of a server for access. */
export class AccessRequests1795700000100 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`CREATE TABLE access_requests (
      id uuid DEFAULT gen_random_uuid() NOT NULL PRIMARY KEY,
      account_id uuid NOT NULL CONSTRAINT access_requests_account_fk REFERENCES accounts (id) ON DELETE CASCADE,
      server_id uuid NOT NULL CONSTRAINT access_requests_server_fk REFERENCES servers (id) ON DELETE CASCADE,
      text text NOT NULL,
      created_at timestamptz(3) DEFAULT now() NOT NULL,
      decided_at timestamptz(3),
      decided_by uuid,
      answer text,
      grant_id uuid CONSTRAINT access_requests_grant_fk REFERENCES grants (id) ON DELETE SET NULL)`);
    await runner.query(
      `CREATE UNIQUE INDEX access_requests_open ON access_requests (account_id, server_id) WHERE decided_at IS NULL`,
    );
    await runner.query(`CREATE INDEX access_requests_account ON access_requests (account_id, created_at)`);
    await runner.query(`CREATE INDEX access_requests_server ON access_requests (server_id, created_at)`);
    await runner.query(`CREATE INDEX access_requests_grant ON access_requests (grant_id)`);
    await runner.query(`CREATE INDEX access_requests_created ON access_requests (created_at)`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP TABLE access_requests`);
  }
}
