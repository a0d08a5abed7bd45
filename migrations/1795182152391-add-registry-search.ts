import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What is found of a server. Words are also taken out of `camelCase` and of names such as `acme/get_forecast`. */
const searchFunctions = [
  `CREATE FUNCTION "servers_words"(given text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
     SELECT translate(given || ' ' || regexp_replace(given, '([a-z0-9])([A-Z])', '\\1 \\2', 'g'), '/_.:@-', '      ')
   $$`,
  `CREATE FUNCTION "servers_lexemes"(given text, weight "char") RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
     SELECT setweight(to_tsvector('simple', words) || to_tsvector('english', words), weight)
       FROM (SELECT servers_words(coalesce(given, '')) AS words) spelled
   $$`,
  // The lengths keep each vector far below the 1 MB Postgres allows.
  `CREATE FUNCTION "servers_fill_search"() RETURNS trigger LANGUAGE plpgsql AS $$
   DECLARE
     space text := (SELECT name FROM namespaces WHERE id = NEW.namespace_id);
     tools text := (SELECT string_agg(left(tool ->> 'name', 200), ' ') FROM jsonb_array_elements(
       CASE jsonb_typeof(NEW.snapshot -> 'tools') WHEN 'array' THEN NEW.snapshot -> 'tools' ELSE '[]' END) AS tool);
   BEGIN
     NEW.search_names := servers_lexemes(CASE NEW.name WHEN '' THEN space ELSE NEW.name END, 'A')
       || servers_lexemes(concat_ws(' ', NEW.display_name, CASE NEW.name WHEN '' THEN NULL ELSE space END), 'B');
     NEW.search := NEW.search_names || servers_lexemes(NEW.description, 'C') || servers_lexemes(left(tools, 40000), 'D');
     NEW.search_words := servers_words(concat_ws(' ', space, NEW.name, NEW.display_name));
     RETURN NEW;
   END
   $$`,
  `CREATE TRIGGER "servers_fill_search" BEFORE INSERT OR UPDATE OF name, namespace_id, display_name, description, snapshot
     ON "servers" FOR EACH ROW EXECUTE FUNCTION "servers_fill_search"()`,
  `UPDATE "servers" SET "name" = "name"`,
];

const searchIndexes = [
  `CREATE INDEX "servers_listed" ON "servers" ("id") WHERE NOT unlisted`,
  `CREATE INDEX "servers_exact_name" ON "servers" (lower("name"))`,
  `CREATE INDEX "servers_exact_title" ON "servers" (lower("display_name"))`,
  `CREATE INDEX "servers_search" ON "servers" USING gin ("search")`,
  `CREATE INDEX "servers_search_names" ON "servers" USING gin ("search_names")`,
  `CREATE INDEX "servers_search_words" ON "servers" USING gin ("search_words" gin_trgm_ops)`,
];

export class AddRegistrySearch1795182152391 implements MigrationInterface {
  name = 'AddRegistrySearch1795182152391';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      `CREATE TABLE "server_icons" ("server_id" uuid NOT NULL, "source" text NOT NULL, "bytes" bytea, "content_type" text, "hash" text, "updated_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL DEFAULT now(), CONSTRAINT "server_icons_source" CHECK ("source" IN ('upload', 'upstream')), CONSTRAINT "PK_31829430d62427a83f073354404" PRIMARY KEY ("server_id"))`,
    );
    await queryRunner.query(
      `CREATE TABLE "server_secrets" ("id" uuid NOT NULL DEFAULT gen_random_uuid(), "server_id" uuid NOT NULL, "name" text NOT NULL, "sealed_value" text NOT NULL, "created_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL DEFAULT now(), CONSTRAINT "PK_d80d22b82c2be3b70050f0a822d" PRIMARY KEY ("id"))`,
    );
    await queryRunner.query(`CREATE UNIQUE INDEX "server_secrets_name" ON "server_secrets"  ("server_id", "name") `);
    await queryRunner.query(`ALTER TABLE "servers" ADD "slug_changed_at" TIMESTAMP(3) WITH TIME ZONE`);
    await queryRunner.query(`ALTER TABLE "servers" ADD "homepage" text`);
    await queryRunner.query(`ALTER TABLE "servers" ADD "repository_url" text`);
    await queryRunner.query(`ALTER TABLE "servers" ADD "repo_owner" text`);
    await queryRunner.query(`ALTER TABLE "servers" ADD "repo_name" text`);
    await queryRunner.query(`ALTER TABLE "servers" ADD "backlink_url" text`);
    await queryRunner.query(`ALTER TABLE "servers" ADD "license" text`);
    await queryRunner.query(`ALTER TABLE "servers" ADD "icon_url" text`);
    await queryRunner.query(`ALTER TABLE "servers" ADD "unlisted" boolean NOT NULL DEFAULT false`);
    await queryRunner.query(`ALTER TABLE "servers" ADD "verified" boolean NOT NULL DEFAULT false`);
    await queryRunner.query(`ALTER TABLE "servers" ADD "use_count" bigint NOT NULL DEFAULT '0'`);
    await queryRunner.query(`ALTER TABLE "servers" ADD "popularity" smallint NOT NULL DEFAULT '0'`);
    await queryRunner.query(`ALTER TABLE "servers" ADD "search" tsvector`);
    await queryRunner.query(`ALTER TABLE "servers" ADD "search_names" tsvector`);
    await queryRunner.query(`ALTER TABLE "servers" ADD "search_words" text`);
    await queryRunner.query(`CREATE INDEX "servers_repository" ON "servers"  ("repo_owner", "repo_name") `);
    await queryRunner.query(
      `CREATE INDEX "servers_verified" ON "servers"  ("popularity", "created_at", "id") WHERE NOT unlisted AND verified`,
    );
    await queryRunner.query(
      `CREATE INDEX "servers_popular" ON "servers"  ("popularity", "created_at", "id") WHERE NOT unlisted`,
    );
    // A trusted extension: whoever owns the database may create it.
    await queryRunner.query('CREATE EXTENSION IF NOT EXISTS pg_trgm');
    for (const statement of [...searchFunctions, ...searchIndexes]) await queryRunner.query(statement);
    await queryRunner.query(
      `ALTER TABLE "server_icons" ADD CONSTRAINT "server_icons_server_fk" FOREIGN KEY ("server_id") REFERENCES "servers"("id") ON DELETE CASCADE ON UPDATE NO ACTION`,
    );
    await queryRunner.query(
      `ALTER TABLE "server_secrets" ADD CONSTRAINT "server_secrets_server_fk" FOREIGN KEY ("server_id") REFERENCES "servers"("id") ON DELETE CASCADE ON UPDATE NO ACTION`,
    );
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "server_secrets" DROP CONSTRAINT "server_secrets_server_fk"`);
    await queryRunner.query(`ALTER TABLE "server_icons" DROP CONSTRAINT "server_icons_server_fk"`);
    await queryRunner.query(`DROP TRIGGER "servers_fill_search" ON "servers"`);
    await queryRunner.query(`DROP FUNCTION "servers_fill_search"`);
    await queryRunner.query(`DROP FUNCTION "servers_lexemes"`);
    await queryRunner.query(`DROP FUNCTION "servers_words"`);
    for (const index of ['listed', 'exact_name', 'exact_title', 'search', 'search_names', 'search_words']) {
      await queryRunner.query(`DROP INDEX "public"."servers_${index}"`);
    }
    await queryRunner.query(`DROP INDEX "public"."servers_popular"`);
    await queryRunner.query(`DROP INDEX "public"."servers_verified"`);
    await queryRunner.query(`DROP INDEX "public"."servers_repository"`);
    await queryRunner.query(`ALTER TABLE "servers" DROP COLUMN "search_words"`);
    await queryRunner.query(`ALTER TABLE "servers" DROP COLUMN "search_names"`);
    await queryRunner.query(`ALTER TABLE "servers" DROP COLUMN "search"`);
    await queryRunner.query(`ALTER TABLE "servers" DROP COLUMN "popularity"`);
    await queryRunner.query(`ALTER TABLE "servers" DROP COLUMN "use_count"`);
    await queryRunner.query(`ALTER TABLE "servers" DROP COLUMN "verified"`);
    await queryRunner.query(`ALTER TABLE "servers" DROP COLUMN "unlisted"`);
    await queryRunner.query(`ALTER TABLE "servers" DROP COLUMN "icon_url"`);
    await queryRunner.query(`ALTER TABLE "servers" DROP COLUMN "license"`);
    await queryRunner.query(`ALTER TABLE "servers" DROP COLUMN "backlink_url"`);
    await queryRunner.query(`ALTER TABLE "servers" DROP COLUMN "repo_name"`);
    await queryRunner.query(`ALTER TABLE "servers" DROP COLUMN "repo_owner"`);
    await queryRunner.query(`ALTER TABLE "servers" DROP COLUMN "repository_url"`);
    await queryRunner.query(`ALTER TABLE "servers" DROP COLUMN "homepage"`);
    await queryRunner.query(`ALTER TABLE "servers" DROP COLUMN "slug_changed_at"`);
    await queryRunner.query(`DROP INDEX "public"."server_secrets_name"`);
    await queryRunner.query(`DROP TABLE "server_secrets"`);
    await queryRunner.query(`DROP TABLE "server_icons"`);
  }
}
