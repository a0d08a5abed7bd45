import type { MigrationInterface, QueryRunner } from 'typeorm';

export class CreateSampleNotes1000000000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      `CREATE TABLE "sample_notes" (
         "id" uuid PRIMARY KEY DEFAULT gen_random_uuid(),
         "account_id" uuid NOT NULL REFERENCES "accounts" ("id") ON DELETE CASCADE,
         "text" text NOT NULL,
         "created_at" timestamptz(3) NOT NULL DEFAULT now()
       )`,
    );
    await queryRunner.query(`CREATE INDEX "sample_notes_account" ON "sample_notes" ("account_id", "created_at")`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP TABLE "sample_notes"`);
  }
}
