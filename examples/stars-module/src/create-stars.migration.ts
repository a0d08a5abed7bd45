import type { MigrationInterface, QueryRunner } from 'typeorm';

export class CreateStars1795300000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      `CREATE TABLE "stars" (
         "server_id" uuid NOT NULL REFERENCES "servers" ("id") ON DELETE CASCADE,
         "account_id" uuid NOT NULL REFERENCES "accounts" ("id") ON DELETE CASCADE,
         "created_at" timestamptz(3) NOT NULL DEFAULT now(),
         PRIMARY KEY ("server_id", "account_id")
       )`,
    );
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP TABLE "stars"`);
  }
}
