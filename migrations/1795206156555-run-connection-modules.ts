import type { MigrationInterface, QueryRunner } from 'typeorm';

export class RunConnectionModules1795206156555 implements MigrationInterface {
  name = 'RunConnectionModules1795206156555';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      `CREATE TABLE "connection_lines" ("seq" bigint GENERATED ALWAYS AS IDENTITY NOT NULL, "connection_id" uuid NOT NULL, "invocation_id" uuid NOT NULL, "at" TIMESTAMP(3) WITH TIME ZONE NOT NULL, "level" text, "name" text, "message" text NOT NULL, CONSTRAINT "PK_93b616bc312fc41378734f7f7d9" PRIMARY KEY ("seq"))`,
    );
    await queryRunner.query(`CREATE INDEX "connection_lines_at" ON "connection_lines"  ("at") `);
    await queryRunner.query(`CREATE INDEX "connection_lines_newest" ON "connection_lines"  ("connection_id", "seq") `);
    await queryRunner.query(
      `CREATE INDEX "connection_lines_invocation" ON "connection_lines"  ("invocation_id", "seq") `,
    );
    await queryRunner.query(`ALTER TABLE "connections" ADD "is_stateful" boolean NOT NULL DEFAULT false`);
    await queryRunner.query(
      `ALTER TABLE "connection_lines" ADD CONSTRAINT "connection_lines_connection_fk" FOREIGN KEY ("connection_id") REFERENCES "connections"("id") ON DELETE CASCADE ON UPDATE NO ACTION`,
    );
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "connection_lines" DROP CONSTRAINT "connection_lines_connection_fk"`);
    await queryRunner.query(`ALTER TABLE "connections" DROP COLUMN "is_stateful"`);
    await queryRunner.query(`DROP INDEX "public"."connection_lines_invocation"`);
    await queryRunner.query(`DROP INDEX "public"."connection_lines_newest"`);
    await queryRunner.query(`DROP INDEX "public"."connection_lines_at"`);
    await queryRunner.query(`DROP TABLE "connection_lines"`);
  }
}
