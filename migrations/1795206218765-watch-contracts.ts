import type { MigrationInterface, QueryRunner } from 'typeorm';

export class WatchContracts1795206218765 implements MigrationInterface {
  name = 'WatchContracts1795206218765';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      `CREATE TABLE "release_contracts" ("seq" bigint GENERATED ALWAYS AS IDENTITY NOT NULL, "server_id" uuid NOT NULL, "release_id" uuid NOT NULL, "previous_release_id" uuid, "hash" text NOT NULL, "summary" text NOT NULL, "change_count" integer NOT NULL, "changes" jsonb NOT NULL DEFAULT '[]', "at" TIMESTAMP(3) WITH TIME ZONE NOT NULL DEFAULT now(), CONSTRAINT "release_contracts_summary" CHECK ("summary" IN ('none', 'compatible', 'risky', 'breaking')), CONSTRAINT "PK_c9e0cb3a24234570cd0ecd8bcbb" PRIMARY KEY ("seq"))`,
    );
    await queryRunner.query(`CREATE INDEX "release_contracts_newest" ON "release_contracts"  ("server_id", "seq") `);
    await queryRunner.query(
      `ALTER TABLE "release_contracts" ADD CONSTRAINT "release_contracts_server_fk" FOREIGN KEY ("server_id") REFERENCES "servers"("id") ON DELETE CASCADE ON UPDATE NO ACTION`,
    );
    await queryRunner.query(
      `ALTER TABLE "release_contracts" ADD CONSTRAINT "release_contracts_release_fk" FOREIGN KEY ("release_id") REFERENCES "releases"("id") ON DELETE CASCADE ON UPDATE NO ACTION`,
    );
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "release_contracts" DROP CONSTRAINT "release_contracts_release_fk"`);
    await queryRunner.query(`ALTER TABLE "release_contracts" DROP CONSTRAINT "release_contracts_server_fk"`);
    await queryRunner.query(`DROP INDEX "public"."release_contracts_newest"`);
    await queryRunner.query(`DROP TABLE "release_contracts"`);
  }
}
