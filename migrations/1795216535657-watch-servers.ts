import type { MigrationInterface, QueryRunner } from 'typeorm';

export class WatchServers1795216535657 implements MigrationInterface {
  name = 'WatchServers1795216535657';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      `CREATE TABLE "server_rescans" ("server_id" uuid NOT NULL, "upstream_url" text, "next_at" TIMESTAMP(3) WITH TIME ZONE, "asked_at" TIMESTAMP(3) WITH TIME ZONE, "sealed_credentials" text, "holder" uuid, "failures" integer NOT NULL DEFAULT '0', "told" text, CONSTRAINT "server_rescans_pk" PRIMARY KEY ("server_id"))`,
    );
    await queryRunner.query(
      `CREATE INDEX "server_rescans_held" ON "server_rescans"  ("holder") WHERE "holder" IS NOT NULL`,
    );
    await queryRunner.query(`CREATE INDEX "server_rescans_due" ON "server_rescans"  ("next_at") `);
    await queryRunner.query(`CREATE INDEX "server_rescans_upstream" ON "server_rescans" USING hash ("upstream_url")`);
    await queryRunner.query(`ALTER TABLE "release_contracts" ADD "found_by" text NOT NULL DEFAULT 'release'`);
    await queryRunner.query(
      `ALTER TABLE "release_contracts" ADD CONSTRAINT "release_contracts_found_by" CHECK ("found_by" IN ('release', 'rescan'))`,
    );
    await queryRunner.query(
      `ALTER TABLE "server_rescans" ADD CONSTRAINT "server_rescans_server_fk" FOREIGN KEY ("server_id") REFERENCES "servers"("id") ON DELETE CASCADE ON UPDATE NO ACTION`,
    );
    // What was published so far is scanned again in the course of a day.
    await queryRunner.query(
      `INSERT INTO "server_rescans" ("server_id", "upstream_url", "next_at")
       SELECT s."id", r."upstream_url", CASE WHEN r."upstream_url" IS NOT NULL THEN now() + random() * interval '24 hours' END
         FROM "servers" s JOIN "releases" r ON r."id" = s."current_release_id"`,
    );
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "server_rescans" DROP CONSTRAINT "server_rescans_server_fk"`);
    await queryRunner.query(`ALTER TABLE "release_contracts" DROP CONSTRAINT "release_contracts_found_by"`);
    await queryRunner.query(`ALTER TABLE "release_contracts" DROP COLUMN "found_by"`);
    await queryRunner.query(`DROP INDEX "public"."server_rescans_upstream"`);
    await queryRunner.query(`DROP INDEX "public"."server_rescans_due"`);
    await queryRunner.query(`DROP INDEX "public"."server_rescans_held"`);
    await queryRunner.query(`DROP TABLE "server_rescans"`);
  }
}
