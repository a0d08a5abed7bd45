import type { MigrationInterface, QueryRunner } from 'typeorm';

export class CreateSkills1795182550157 implements MigrationInterface {
  name = 'CreateSkills1795182550157';

  public async up(queryRunner: QueryRunner): Promise<void> {
    // Trusted since Postgres 13: who may create tables here may also create it.
    await queryRunner.query(`CREATE EXTENSION IF NOT EXISTS pg_trgm`);
    await queryRunner.query(
      `CREATE TABLE "skills" ("id" uuid NOT NULL DEFAULT gen_random_uuid(), "namespace_id" uuid NOT NULL, "slug" text NOT NULL, "name" text NOT NULL, "description" text NOT NULL, "prompt" text NOT NULL, "categories" text array NOT NULL DEFAULT '{}', "servers" text array NOT NULL DEFAULT '{}', "git_url" text, "git_source" text, "content_hash" text NOT NULL, "search" tsvector, "total_activations" integer NOT NULL DEFAULT '0', "created_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL DEFAULT now(), "updated_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL DEFAULT now(), CONSTRAINT "skills_slug" CHECK ("slug" ~ '^[a-z0-9-]{1,64}$'), CONSTRAINT "PK_0d3212120f4ecedf90864d7e298" PRIMARY KEY ("id"))`,
    );
    await queryRunner.query(`CREATE UNIQUE INDEX "skills_git_source" ON "skills"  ("git_source") `);
    await queryRunner.query(`CREATE INDEX "skills_newest" ON "skills"  ("created_at", "id") `);
    await queryRunner.query(`CREATE UNIQUE INDEX "skills_qualified_name" ON "skills"  ("namespace_id", "slug") `);
    await queryRunner.query(
      `CREATE TABLE "skill_files" ("skill_id" uuid NOT NULL, "path" text NOT NULL, "content" bytea NOT NULL, "is_executable" boolean NOT NULL, CONSTRAINT "PK_ad3ffb2fa28e5a0d4ec93908cd7" PRIMARY KEY ("skill_id", "path"))`,
    );
    await queryRunner.query(
      `ALTER TABLE "skills" ADD CONSTRAINT "skills_namespace_fk" FOREIGN KEY ("namespace_id") REFERENCES "namespaces"("id") ON DELETE CASCADE ON UPDATE NO ACTION`,
    );
    await queryRunner.query(
      `ALTER TABLE "skill_files" ADD CONSTRAINT "skill_files_skill_fk" FOREIGN KEY ("skill_id") REFERENCES "skills"("id") ON DELETE CASCADE ON UPDATE NO ACTION`,
    );
    await queryRunner.query(
      `CREATE TRIGGER "skills_search_words" BEFORE INSERT OR UPDATE OF "slug", "name", "description" ON "skills" FOR EACH ROW EXECUTE FUNCTION tsvector_update_trigger("search", 'pg_catalog.english', "slug", "name", "description")`,
    );
    await queryRunner.query(`CREATE INDEX "skills_search" ON "skills" USING gin ("search")`);
    await queryRunner.query(
      `CREATE INDEX "skills_typos" ON "skills" USING gin (("slug" || ' ' || "name" || ' ' || "description") gin_trgm_ops)`,
    );
    await queryRunner.query(`CREATE INDEX "skills_categories" ON "skills" USING gin ("categories")`);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "skill_files" DROP CONSTRAINT "skill_files_skill_fk"`);
    await queryRunner.query(`ALTER TABLE "skills" DROP CONSTRAINT "skills_namespace_fk"`);
    await queryRunner.query(`DROP TABLE "skill_files"`);
    await queryRunner.query(`DROP INDEX "public"."skills_qualified_name"`);
    await queryRunner.query(`DROP INDEX "public"."skills_newest"`);
    await queryRunner.query(`DROP INDEX "public"."skills_git_source"`);
    await queryRunner.query(`DROP TABLE "skills"`);
  }
}
