import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The identities at the issuer of the company sign-in, by which people sign in to their accounts, and sign-outs of such
 * sessions.
 */
export class Identities1795790000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE sessions ADD ends_at timestamptz(3)');
    await runner.query(`CREATE TABLE identities (
      issuer text NOT NULL,
      subject text NOT NULL,
      account_id uuid NOT NULL CONSTRAINT identities_account_fk REFERENCES accounts (id) ON DELETE CASCADE,
      name text NOT NULL,
      refresh_token text,
      created_at timestamptz(3) NOT NULL DEFAULT now(),
      signed_in_at timestamptz(3) NOT NULL DEFAULT now(),
      CONSTRAINT identities_pk PRIMARY KEY (issuer, subject)
    )`);
    await runner.query('CREATE INDEX identities_account ON identities (account_id)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE identities');
    await runner.query('ALTER TABLE sessions DROP COLUMN ends_at');
  }
}
