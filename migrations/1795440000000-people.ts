import type { MigrationInterface, QueryRunner } from 'typeorm';

/** People who sign in with a browser: passwords, sessions and invitations; accounts that are disabled. */
export class People1795440000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE accounts ADD COLUMN disabled_at timestamptz(3);
      CREATE TABLE people (
        account_id uuid PRIMARY KEY CONSTRAINT people_account_fk REFERENCES accounts (id) ON DELETE CASCADE,
        password_hash text,
        password_at timestamptz(3)
      );
      CREATE TABLE sessions (
        hash bytea PRIMARY KEY,
        id uuid NOT NULL DEFAULT gen_random_uuid(),
        account_id uuid NOT NULL CONSTRAINT sessions_account_fk REFERENCES accounts (id) ON DELETE CASCADE,
        key_id uuid CONSTRAINT sessions_key_fk REFERENCES api_keys (id) ON DELETE CASCADE,
        address text NOT NULL,
        agent text NOT NULL,
        created_at timestamptz(3) NOT NULL DEFAULT now(),
        last_used_at timestamptz(3) NOT NULL DEFAULT now(),
        expires_at timestamptz(3) NOT NULL
      );
      CREATE UNIQUE INDEX sessions_id ON sessions (id);
      CREATE INDEX sessions_account ON sessions (account_id);
      CREATE INDEX sessions_key ON sessions (key_id) WHERE key_id IS NOT NULL;
      CREATE INDEX sessions_expires ON sessions (expires_at);
      CREATE TABLE invitations (
        hash bytea PRIMARY KEY,
        account_id uuid NOT NULL CONSTRAINT invitations_account_fk REFERENCES accounts (id) ON DELETE CASCADE,
        created_by uuid NOT NULL,
        expires_at timestamptz(3) NOT NULL,
        used_at timestamptz(3)
      );
      CREATE INDEX invitations_account ON invitations (account_id);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      DROP TABLE invitations;
      DROP TABLE sessions;
      DROP TABLE people;
      ALTER TABLE accounts DROP COLUMN disabled_at;
    `);
  }
}
