import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Memberships by groups of a directory, checks of identities, and the suspension of the credentials of people who left. */
export class CompanySignIn1795791000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE memberships ADD source text');
    await runner.query('ALTER TABLE accounts ADD credentials_suspended_at timestamptz(3)');
    await runner.query('ALTER TABLE accounts ADD credentials_suspended_for text');
    await runner.query(
      'ALTER TABLE identities ADD checked_at timestamptz(3), ADD failed_at timestamptz(3), ADD id_token text',
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE identities DROP COLUMN checked_at, DROP COLUMN failed_at, DROP COLUMN id_token');
    await runner.query('ALTER TABLE accounts DROP COLUMN credentials_suspended_for');
    await runner.query('ALTER TABLE accounts DROP COLUMN credentials_suspended_at');
    await runner.query('ALTER TABLE memberships DROP COLUMN source');
  }
}
