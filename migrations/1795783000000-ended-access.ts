import type { MigrationInterface, QueryRunner } from 'typeorm';

/** An index of revoked grants and memberships by account. */
export class EndedAccess1795783000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `CREATE INDEX changes_ended ON changes (coalesce(before->>'accountId', target_id::text), created_at)
        WHERE action IN ('grant.deleted', 'member.deleted')`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX changes_ended');
  }
}
