import type { MigrationInterface, QueryRunner } from 'typeorm';

export class LookAfterConnections1795196369867 implements MigrationInterface {
  name = 'LookAfterConnections1795196369867';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "connections" ADD "status_challenges" jsonb`);
    await queryRunner.query(`ALTER TABLE "connections" ADD "step_ups" jsonb NOT NULL DEFAULT '[]'`);
    await queryRunner.query(`ALTER TABLE "connections" ADD "status_seen_at" TIMESTAMP(3) WITH TIME ZONE`);
    await queryRunner.query(`ALTER TABLE "connections" ADD "next_check_at" TIMESTAMP(3) WITH TIME ZONE`);
    await queryRunner.query(`ALTER TABLE "connections" ADD "check_failures" integer NOT NULL DEFAULT '0'`);
    await queryRunner.query(
      `UPDATE connections SET next_check_at = now() + random() * interval '1 hour'
        WHERE status_state IN ('connected', 'error') AND target_kind IN ('url', 'server') AND mock IS NULL`,
    );
    await queryRunner.query(
      `CREATE INDEX "connections_shared" ON "connections"  ("mcp_url") WHERE next_check_at IS NOT NULL AND sealed_headers IS NULL AND target_kind = 'url'`,
    );
    await queryRunner.query(
      `CREATE INDEX "connections_due" ON "connections"  ("next_check_at") WHERE next_check_at IS NOT NULL`,
    );
    await queryRunner.query(`CREATE INDEX "upstream_credentials_due" ON "upstream_credentials"  ("due_at") `);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP INDEX "public"."upstream_credentials_due"`);
    await queryRunner.query(`DROP INDEX "public"."connections_due"`);
    await queryRunner.query(`DROP INDEX "public"."connections_shared"`);
    await queryRunner.query(`ALTER TABLE "connections" DROP COLUMN "check_failures"`);
    await queryRunner.query(`ALTER TABLE "connections" DROP COLUMN "next_check_at"`);
    await queryRunner.query(`ALTER TABLE "connections" DROP COLUMN "status_seen_at"`);
    await queryRunner.query(`ALTER TABLE "connections" DROP COLUMN "step_ups"`);
    await queryRunner.query(`ALTER TABLE "connections" DROP COLUMN "status_challenges"`);
  }
}
