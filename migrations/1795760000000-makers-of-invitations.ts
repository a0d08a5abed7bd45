import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Invitations know the key that created them, and accounts the organization whose invitation created them. */
export class MakersOfInvitations1795760000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE invitations ADD made_by_key uuid');
    await runner.query('ALTER TABLE accounts ADD made_for uuid');
    await runner.query('CREATE INDEX accounts_made_for ON accounts (made_for) WHERE made_for IS NOT NULL');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE accounts DROP COLUMN made_for');
    await runner.query('ALTER TABLE invitations DROP COLUMN made_by_key');
  }
}
