import type { MigrationInterface, QueryRunner } from 'typeorm';

export class AimConnections1795192807355 implements MigrationInterface {
  name = 'AimConnections1795192807355';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "connections" ADD "target_kind" text NOT NULL DEFAULT 'url'`);
    await queryRunner.query(`ALTER TABLE "connections" ADD "server_id" uuid`);
    await queryRunner.query(`ALTER TABLE "connections" ADD "server_name" text`);
    await queryRunner.query(`ALTER TABLE "connections" ADD "source" jsonb`);
    await queryRunner.query(`ALTER TABLE "connections" ADD "mock" jsonb`);
    await queryRunner.query(`ALTER TABLE "connections" ADD "sealed_query" text`);
    await queryRunner.query(`ALTER TABLE "connections" ADD "setup_epoch" integer NOT NULL DEFAULT '1'`);
    await queryRunner.query(`ALTER TABLE "connections" ADD "status_reason" text NOT NULL DEFAULT 'never_called'`);
    await queryRunner.query(`ALTER TABLE "connections" ADD "status_inputs" jsonb`);
    await queryRunner.query(`ALTER TABLE "connections" ALTER COLUMN "mcp_url" DROP NOT NULL`);
    await queryRunner.query(
      `CREATE INDEX "connections_server" ON "connections"  ("server_id", "namespace_id", "seq") `,
    );
    await queryRunner.query(
      `UPDATE connections SET status_reason = CASE status_state
         WHEN 'connected' THEN 'ok' WHEN 'auth_required' THEN 'unauthorized' WHEN 'error' THEN 'unreachable'
         ELSE 'never_called' END`,
    );
    await queryRunner.query(`ALTER TABLE "connections" DROP CONSTRAINT "connections_state"`);
    await queryRunner.query(
      `ALTER TABLE "connections" ADD CONSTRAINT "connections_state" CHECK ("status_state" IN ('connected', 'disconnected', 'auth_required', 'input_required', 'error'))`,
    );
    await queryRunner.query(
      `ALTER TABLE "connections" ADD CONSTRAINT "connections_target_kind" CHECK ("target_kind" IN ('url', 'server', 'source', 'uplink'))`,
    );
    await queryRunner.query(
      `ALTER TABLE "connections" ADD CONSTRAINT "connections_server_fk" FOREIGN KEY ("server_id") REFERENCES "servers"("id") ON DELETE SET NULL ON UPDATE NO ACTION`,
    );
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "connections" DROP CONSTRAINT "connections_server_fk"`);
    await queryRunner.query(`ALTER TABLE "connections" DROP CONSTRAINT "connections_target_kind"`);
    await queryRunner.query(`DELETE FROM connections WHERE mcp_url IS NULL OR status_state = 'input_required'`);
    await queryRunner.query(`ALTER TABLE "connections" DROP CONSTRAINT "connections_state"`);
    await queryRunner.query(
      `ALTER TABLE "connections" ADD CONSTRAINT "connections_state" CHECK ("status_state" IN ('connected', 'disconnected', 'auth_required', 'error'))`,
    );
    await queryRunner.query(`DROP INDEX "public"."connections_server"`);
    await queryRunner.query(`ALTER TABLE "connections" ALTER COLUMN "mcp_url" SET NOT NULL`);
    await queryRunner.query(`ALTER TABLE "connections" DROP COLUMN "status_inputs"`);
    await queryRunner.query(`ALTER TABLE "connections" DROP COLUMN "status_reason"`);
    await queryRunner.query(`ALTER TABLE "connections" DROP COLUMN "setup_epoch"`);
    await queryRunner.query(`ALTER TABLE "connections" DROP COLUMN "sealed_query"`);
    await queryRunner.query(`ALTER TABLE "connections" DROP COLUMN "mock"`);
    await queryRunner.query(`ALTER TABLE "connections" DROP COLUMN "source"`);
    await queryRunner.query(`ALTER TABLE "connections" DROP COLUMN "server_name"`);
    await queryRunner.query(`ALTER TABLE "connections" DROP COLUMN "server_id"`);
    await queryRunner.query(`ALTER TABLE "connections" DROP COLUMN "target_kind"`);
  }
}
