import type { MigrationInterface, QueryRunner } from 'typeorm';

export class CreateSampleNotes1000000000000 implements MigrationInterface {
  name = 'CreateSampleNotes1000000000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      `CREATE TABLE "sample_notes" ("server_id" uuid NOT NULL, "account_id" uuid NOT NULL, "created_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL DEFAULT now(), CONSTRAINT "sample_notes_pk" PRIMARY KEY ("server_id", "account_id"))`,
    );
    await queryRunner.query(`CREATE INDEX "sample_notes_account" ON "sample_notes" ("account_id")`);
    await queryRunner.query(
      `ALTER TABLE "sample_notes" ADD CONSTRAINT "sample_notes_server_fk" FOREIGN KEY ("server_id") REFERENCES "servers"("id") ON DELETE CASCADE ON UPDATE NO ACTION`,
    );
    await queryRunner.query(
      `ALTER TABLE "sample_notes" ADD CONSTRAINT "sample_notes_account_fk" FOREIGN KEY ("account_id") REFERENCES "accounts"("id") ON DELETE CASCADE ON UPDATE NO ACTION`,
    );
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP TABLE "sample_notes"`);
  }
}
