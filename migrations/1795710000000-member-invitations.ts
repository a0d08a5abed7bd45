import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Invitations can also be to organizations. */
export class MemberInvitations1795710000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE invitations ADD role text,
      ADD CONSTRAINT invitations_role CHECK (role IN ('owner', 'editor', 'member', 'guest'))`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DELETE FROM invitations WHERE role IS NOT NULL`);
    await runner.query(`ALTER TABLE invitations DROP COLUMN role`);
  }
}
