import type { MigrationInterface, QueryRunner } from 'typeorm';

export class CreateReleases1795181540972 implements MigrationInterface {
  name = 'CreateReleases1795181540972';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      `CREATE TABLE "releases" ("id" uuid NOT NULL DEFAULT gen_random_uuid(), "seq" bigint GENERATED ALWAYS AS IDENTITY NOT NULL, "server_id" uuid NOT NULL, "type" text NOT NULL, "status" text NOT NULL, "stage" text NOT NULL DEFAULT 'deploy', "attempt" integer NOT NULL DEFAULT '1', "recoveries" integer NOT NULL DEFAULT '0', "lease_holder" uuid, "lease_until" TIMESTAMP(3) WITH TIME ZONE, "commit" text, "commit_message" text, "branch" text, "upstream_url" text, "runtime" text, "config_schema" jsonb, "server_card" jsonb, "hosting" jsonb, "sealed_scan_credentials" text, "snapshot" jsonb, "created_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL DEFAULT now(), "updated_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL DEFAULT now(), CONSTRAINT "releases_type" CHECK ("type" IN ('external_shttp', 'hosted_shttp', 'stdio')), CONSTRAINT "releases_stage" CHECK ("stage" IN ('deploy', 'scan', 'metadata', 'publish')), CONSTRAINT "releases_status" CHECK ("status" IN ('QUEUED', 'WORKING', 'SUCCESS', 'FAILURE', 'FAILURE_SCAN', 'INTERNAL_ERROR', 'AUTH_REQUIRED', 'AUTH_TIMEOUT', 'CANCELLED')), CONSTRAINT "PK_6b6fc2599a5a281dd44a7d64016" PRIMARY KEY ("id"))`,
    );
    await queryRunner.query(
      `CREATE INDEX "releases_unfinished" ON "releases"  ("lease_until") WHERE "status" IN ('QUEUED', 'WORKING', 'AUTH_REQUIRED')`,
    );
    await queryRunner.query(`CREATE INDEX "releases_newest" ON "releases"  ("server_id", "seq") `);
    await queryRunner.query(
      `CREATE TABLE "release_artifacts" ("release_id" uuid NOT NULL, "kind" text NOT NULL, "hash" text NOT NULL, "bytes" integer NOT NULL, CONSTRAINT "release_artifacts_kind" CHECK ("kind" IN ('module', 'sourcemap', 'bundle')), CONSTRAINT "PK_b62a04a211823ec19634f8b79a1" PRIMARY KEY ("release_id", "kind"))`,
    );
    await queryRunner.query(`CREATE INDEX "release_artifacts_hash" ON "release_artifacts"  ("hash") `);
    // By hand: whatever deletes artifacts, a server's deletion too, leaves a note of the files that may be unused now.
    await queryRunner.query(`CREATE TABLE "blob_garbage" ("hash" text NOT NULL PRIMARY KEY)`);
    await queryRunner.query(
      `CREATE FUNCTION note_blob_garbage() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN
         INSERT INTO blob_garbage SELECT DISTINCT hash FROM gone ON CONFLICT DO NOTHING;
         RETURN NULL;
       END $$`,
    );
    await queryRunner.query(
      `CREATE TRIGGER release_artifacts_garbage AFTER DELETE ON "release_artifacts"
         REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION note_blob_garbage()`,
    );
    await queryRunner.query(
      `CREATE TABLE "release_logs" ("seq" bigint GENERATED ALWAYS AS IDENTITY NOT NULL, "release_id" uuid NOT NULL, "stage" text NOT NULL, "level" text NOT NULL, "message" text NOT NULL, "error" text, "created_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL DEFAULT clock_timestamp(), CONSTRAINT "release_logs_stage" CHECK ("stage" IN ('deploy', 'scan', 'metadata', 'publish')), CONSTRAINT "PK_a919ec7b911fd9479b90bedabfe" PRIMARY KEY ("seq"))`,
    );
    await queryRunner.query(`CREATE INDEX "release_logs_release" ON "release_logs"  ("release_id", "seq") `);
    await queryRunner.query(`ALTER TABLE "servers" ADD "slug" text`);
    // Two servers may lead to the same words ("a--b" alone, and "b" of "a"): the younger one gets a part of its id.
    await queryRunner.query(
      `UPDATE "servers" s SET "slug" = named.slug || CASE WHEN named.place = 1 THEN '' ELSE '-' || left(s.id::text, 8) END
         FROM (SELECT *, row_number() OVER (PARTITION BY slug ORDER BY created_at, id) AS place
                 FROM (SELECT o.id, o.created_at, n.name || CASE o.name WHEN '' THEN '' ELSE '--' || o.name END AS slug
                         FROM "servers" o JOIN "namespaces" n ON n.id = o.namespace_id) spelled) named
        WHERE named.id = s.id`,
    );
    await queryRunner.query(`ALTER TABLE "servers" ALTER COLUMN "slug" SET NOT NULL`);
    await queryRunner.query(`ALTER TABLE "servers" ADD "current_release_id" uuid`);
    await queryRunner.query(`ALTER TABLE "servers" ADD "current_type" text`);
    await queryRunner.query(`ALTER TABLE "servers" ADD "snapshot" jsonb`);
    await queryRunner.query(`ALTER TABLE "servers" ADD "scan_passed" boolean`);
    await queryRunner.query(`CREATE UNIQUE INDEX "servers_slug" ON "servers"  ("slug") `);
    await queryRunner.query(
      `ALTER TABLE "releases" ADD CONSTRAINT "releases_server_fk" FOREIGN KEY ("server_id") REFERENCES "servers"("id") ON DELETE CASCADE ON UPDATE NO ACTION`,
    );
    await queryRunner.query(
      `ALTER TABLE "release_artifacts" ADD CONSTRAINT "release_artifacts_release_fk" FOREIGN KEY ("release_id") REFERENCES "releases"("id") ON DELETE CASCADE ON UPDATE NO ACTION`,
    );
    await queryRunner.query(
      `ALTER TABLE "release_logs" ADD CONSTRAINT "release_logs_release_fk" FOREIGN KEY ("release_id") REFERENCES "releases"("id") ON DELETE CASCADE ON UPDATE NO ACTION`,
    );
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "release_logs" DROP CONSTRAINT "release_logs_release_fk"`);
    await queryRunner.query(`ALTER TABLE "release_artifacts" DROP CONSTRAINT "release_artifacts_release_fk"`);
    await queryRunner.query(`ALTER TABLE "releases" DROP CONSTRAINT "releases_server_fk"`);
    await queryRunner.query(`DROP INDEX "public"."servers_slug"`);
    await queryRunner.query(`ALTER TABLE "servers" DROP COLUMN "scan_passed"`);
    await queryRunner.query(`ALTER TABLE "servers" DROP COLUMN "snapshot"`);
    await queryRunner.query(`ALTER TABLE "servers" DROP COLUMN "current_type"`);
    await queryRunner.query(`ALTER TABLE "servers" DROP COLUMN "current_release_id"`);
    await queryRunner.query(`ALTER TABLE "servers" DROP COLUMN "slug"`);
    await queryRunner.query(`DROP INDEX "public"."release_logs_release"`);
    await queryRunner.query(`DROP TABLE "release_logs"`);
    await queryRunner.query(`DROP INDEX "public"."release_artifacts_hash"`);
    await queryRunner.query(`DROP TABLE "release_artifacts"`);
    await queryRunner.query(`DROP FUNCTION note_blob_garbage`);
    await queryRunner.query(`DROP TABLE "blob_garbage"`);
    await queryRunner.query(`DROP INDEX "public"."releases_newest"`);
    await queryRunner.query(`DROP INDEX "public"."releases_unfinished"`);
    await queryRunner.query(`DROP TABLE "releases"`);
  }
}
