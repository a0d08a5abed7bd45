import type { MigrationInterface, QueryRunner } from 'typeorm';

export class CreateWebhooks1795300000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      `CREATE TABLE "webhooks" (
         "id" uuid NOT NULL PRIMARY KEY,
         "account_id" uuid NOT NULL REFERENCES "accounts" ("id") ON DELETE CASCADE,
         "url" text NOT NULL,
         "events" text[] NOT NULL,
         "sealed_secret" text NOT NULL,
         "created_at" timestamptz(3) NOT NULL DEFAULT now()
       )`,
    );
    await queryRunner.query(`CREATE INDEX "webhooks_account" ON "webhooks" ("account_id")`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP TABLE "webhooks"`);
  }
}
