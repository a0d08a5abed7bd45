import type { MigrationInterface, QueryRunner } from 'typeorm';

export class AddToolOutputShapes1795205149056 implements MigrationInterface {
  name = 'AddToolOutputShapes1795205149056';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      `CREATE TABLE "tool_output_shapes" ("server_id" uuid NOT NULL, "tool_name" text NOT NULL, "week" integer NOT NULL, "samples" integer NOT NULL, "structured" integer NOT NULL, "shape" text NOT NULL, CONSTRAINT "tool_output_shapes_pk" PRIMARY KEY ("server_id", "tool_name", "week"))`,
    );
    await queryRunner.query(`CREATE INDEX "tool_output_shapes_week" ON "tool_output_shapes"  ("week") `);
    await queryRunner.query(
      `ALTER TABLE "tool_output_shapes" ADD CONSTRAINT "tool_output_shapes_server_fk" FOREIGN KEY ("server_id") REFERENCES "servers"("id") ON DELETE CASCADE ON UPDATE NO ACTION`,
    );
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "tool_output_shapes" DROP CONSTRAINT "tool_output_shapes_server_fk"`);
    await queryRunner.query(`DROP INDEX "public"."tool_output_shapes_week"`);
    await queryRunner.query(`DROP TABLE "tool_output_shapes"`);
  }
}
