import type { MigrationInterface, QueryRunner } from 'typeorm';

export class AddConnectionInvocations1795193724725 implements MigrationInterface {
  name = 'AddConnectionInvocations1795193724725';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      `CREATE TABLE "connection_invocations" ("id" uuid NOT NULL, "connection_id" uuid NOT NULL, "at" TIMESTAMP(3) WITH TIME ZONE NOT NULL, "method" text NOT NULL, "url" text NOT NULL, "rpc_method" text, "tool_name" text, "status" integer NOT NULL, "outcome" text NOT NULL, "failure_name" text, "failure_message" text, "guard_ms" real, "queue_ms" real, "connect_ms" real, "first_byte_ms" real, "total_ms" real NOT NULL, CONSTRAINT "connection_invocations_outcome" CHECK ("outcome" IN ('ok', 'exception', 'canceled', 'denied')), CONSTRAINT "PK_f2c1e23c2a6aff79959e2683c89" PRIMARY KEY ("id"))`,
    );
    await queryRunner.query(`CREATE INDEX "connection_invocations_at" ON "connection_invocations"  ("at") `);
    await queryRunner.query(
      `CREATE INDEX "connection_invocations_newest" ON "connection_invocations"  ("connection_id", "at", "id") `,
    );
    await queryRunner.query(
      `ALTER TABLE "connection_invocations" ADD CONSTRAINT "connection_invocations_connection_fk" FOREIGN KEY ("connection_id") REFERENCES "connections"("id") ON DELETE CASCADE ON UPDATE NO ACTION`,
    );
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      `ALTER TABLE "connection_invocations" DROP CONSTRAINT "connection_invocations_connection_fk"`,
    );
    await queryRunner.query(`DROP INDEX "public"."connection_invocations_newest"`);
    await queryRunner.query(`DROP INDEX "public"."connection_invocations_at"`);
    await queryRunner.query(`DROP TABLE "connection_invocations"`);
  }
}
