import type { MigrationInterface, QueryRunner } from 'typeorm';

/** An invitation into an organization may be for one account, which accepts or declines it. */
export class AccountInvitations1795741000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE invitations ADD id uuid NOT NULL DEFAULT gen_random_uuid(), ADD invited_id uuid,
      ADD CONSTRAINT invitations_invited_fk FOREIGN KEY (invited_id) REFERENCES accounts (id) ON DELETE CASCADE`);
    await runner.query('CREATE UNIQUE INDEX invitations_invited ON invitations (invited_id, account_id)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DELETE FROM invitations WHERE invited_id IS NOT NULL');
    await runner.query('ALTER TABLE invitations DROP COLUMN invited_id, DROP COLUMN id');
  }
}
