import type { MigrationInterface, QueryRunner } from 'typeorm';

export class CreateSampleNotes1000000000000 implements MigrationInterface {
  name = 'CreateSampleNotes1000000000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      `CREATE TABLE "sample_notes" ("id" uuid NOT NULL DEFAULT gen_random_uuid(), "namespace_id" uuid NOT NULL, "name" text NOT NULL, "text" text NOT NULL, "created_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL DEFAULT now(), CONSTRAINT "sample_notes_pk" PRIMARY KEY ("id"))`,
    );
    await queryRunner.query(`CREATE UNIQUE INDEX "sample_notes_name" ON "sample_notes" ("namespace_id", "name")`);
    await queryRunner.query(
      `ALTER TABLE "sample_notes" ADD CONSTRAINT "sample_notes_namespace_fk" FOREIGN KEY ("namespace_id") REFERENCES "namespaces"("id") ON DELETE CASCADE ON UPDATE NO ACTION`,
    );
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP TABLE "sample_notes"`);
  }
}
