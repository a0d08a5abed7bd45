import type { MigrationInterface, QueryRunner } from 'typeorm';

export class AddRecordings1795195221491 implements MigrationInterface {
  name = 'AddRecordings1795195221491';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      `CREATE TABLE "recorded_calls" ("seq" bigint GENERATED ALWAYS AS IDENTITY NOT NULL, "connection_id" uuid NOT NULL, "tool" text NOT NULL, "sealed" text NOT NULL, "bytes" integer NOT NULL, "recorded_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL DEFAULT now(), CONSTRAINT "PK_32480e3db4991095fc902c52716" PRIMARY KEY ("seq"))`,
    );
    await queryRunner.query(`CREATE INDEX "recorded_calls_age" ON "recorded_calls"  ("recorded_at") `);
    await queryRunner.query(`CREATE INDEX "recorded_calls_order" ON "recorded_calls"  ("connection_id", "seq") `);
    await queryRunner.query(
      `CREATE TABLE "mock_replies" ("connection_id" uuid NOT NULL, "place" integer NOT NULL, "sealed" text NOT NULL, CONSTRAINT "PK_d2e89a29a44d8f90c5d5f4981b3" PRIMARY KEY ("connection_id", "place"))`,
    );
    await queryRunner.query(`ALTER TABLE "connections" ADD "recording_until" TIMESTAMP(3) WITH TIME ZONE`);
    await queryRunner.query(
      `ALTER TABLE "recorded_calls" ADD CONSTRAINT "recorded_calls_connection_fk" FOREIGN KEY ("connection_id") REFERENCES "connections"("id") ON DELETE CASCADE ON UPDATE NO ACTION`,
    );
    await queryRunner.query(
      `ALTER TABLE "mock_replies" ADD CONSTRAINT "mock_replies_mock_fk" FOREIGN KEY ("connection_id") REFERENCES "connection_mocks"("connection_id") ON DELETE CASCADE ON UPDATE NO ACTION`,
    );
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "mock_replies" DROP CONSTRAINT "mock_replies_mock_fk"`);
    await queryRunner.query(`ALTER TABLE "recorded_calls" DROP CONSTRAINT "recorded_calls_connection_fk"`);
    await queryRunner.query(`ALTER TABLE "connections" DROP COLUMN "recording_until"`);
    await queryRunner.query(`DROP TABLE "mock_replies"`);
    await queryRunner.query(`DROP INDEX "public"."recorded_calls_order"`);
    await queryRunner.query(`DROP INDEX "public"."recorded_calls_age"`);
    await queryRunner.query(`DROP TABLE "recorded_calls"`);
  }
}
