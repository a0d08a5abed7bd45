import type { MigrationInterface, QueryRunner } from 'typeorm';

export class CreateCoreTables1795172185715 implements MigrationInterface {
  name = 'CreateCoreTables1795172185715';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      `CREATE TABLE "accounts" ("id" uuid NOT NULL DEFAULT gen_random_uuid(), "name" text NOT NULL, "kind" text NOT NULL, "is_operator" boolean NOT NULL DEFAULT false, "created_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL DEFAULT now(), CONSTRAINT "accounts_kind" CHECK ("kind" IN ('user', 'organization')), CONSTRAINT "PK_5a7a02c20412299d198e097a8fe" PRIMARY KEY ("id"))`,
    );
    await queryRunner.query(`CREATE UNIQUE INDEX "accounts_name" ON "accounts"  ("name") `);
    await queryRunner.query(
      `CREATE TABLE "api_keys" ("id" uuid NOT NULL DEFAULT gen_random_uuid(), "account_id" uuid NOT NULL, "name" text NOT NULL, "prefix" text NOT NULL, "hash" bytea NOT NULL, "created_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL DEFAULT now(), "last_used_at" TIMESTAMP(3) WITH TIME ZONE, "expires_at" TIMESTAMP(3) WITH TIME ZONE, CONSTRAINT "PK_5c8a79801b44bd27b79228e1dad" PRIMARY KEY ("id"))`,
    );
    await queryRunner.query(`CREATE INDEX "api_keys_account" ON "api_keys"  ("account_id") `);
    await queryRunner.query(`CREATE UNIQUE INDEX "api_keys_hash" ON "api_keys"  ("hash") `);
    await queryRunner.query(`CREATE INDEX "api_keys_expires" ON "api_keys"  ("expires_at") `);
    await queryRunner.query(
      `CREATE TABLE "namespaces" ("id" uuid NOT NULL DEFAULT gen_random_uuid(), "name" text NOT NULL, "account_id" uuid NOT NULL, "created_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL DEFAULT now(), CONSTRAINT "namespaces_name" CHECK ("name" ~ '^[a-z0-9][a-z0-9-]{1,37}[a-z0-9]$'), CONSTRAINT "PK_35c142e0f0de70165cc1a74b2cb" PRIMARY KEY ("id"))`,
    );
    await queryRunner.query(`CREATE UNIQUE INDEX "namespaces_name_unique" ON "namespaces"  ("name") `);
    await queryRunner.query(`CREATE INDEX "namespaces_account" ON "namespaces"  ("account_id") `);
    await queryRunner.query(
      `CREATE TABLE "connections" ("id" uuid NOT NULL DEFAULT gen_random_uuid(), "seq" bigint GENERATED ALWAYS AS IDENTITY NOT NULL, "namespace_id" uuid NOT NULL, "connection_id" text NOT NULL, "name" text NOT NULL, "mcp_url" text NOT NULL, "metadata" jsonb NOT NULL DEFAULT '{}', "sealed_headers" text, "revision" integer NOT NULL DEFAULT '1', "status_state" text NOT NULL, "status_message" text, "status_since" TIMESTAMP(3) WITH TIME ZONE NOT NULL DEFAULT now(), "last_ok_at" TIMESTAMP(3) WITH TIME ZONE, "server_info" jsonb, "created_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL DEFAULT now(), CONSTRAINT "connections_state" CHECK ("status_state" IN ('connected', 'disconnected', 'auth_required', 'error')), CONSTRAINT "PK_0a1f844af3122354cbd487a8d03" PRIMARY KEY ("id"))`,
    );
    await queryRunner.query(`CREATE INDEX "connections_mcp_url" ON "connections"  ("namespace_id", "mcp_url", "seq") `);
    await queryRunner.query(`CREATE INDEX "connections_name" ON "connections"  ("namespace_id", "name", "seq") `);
    await queryRunner.query(`CREATE INDEX "connections_newest" ON "connections"  ("namespace_id", "seq") `);
    await queryRunner.query(
      `CREATE UNIQUE INDEX "connections_id" ON "connections"  ("namespace_id", "connection_id") `,
    );
    // By hand: an operator class TypeORM cannot express. btree_gin lets one index hold the namespace and the metadata.
    await queryRunner.query(`CREATE EXTENSION IF NOT EXISTS btree_gin`);
    await queryRunner.query(
      `CREATE INDEX "connections_metadata" ON "connections" USING gin ("namespace_id", "metadata" jsonb_path_ops)`,
    );
    await queryRunner.query(
      `CREATE TABLE "servers" ("id" uuid NOT NULL DEFAULT gen_random_uuid(), "namespace_id" uuid NOT NULL, "name" text NOT NULL, "display_name" text NOT NULL, "description" text NOT NULL DEFAULT '', "created_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL DEFAULT now(), CONSTRAINT "servers_name" CHECK ("name" ~ '^([a-zA-Z0-9][a-zA-Z0-9_-]{2,38})?$'), CONSTRAINT "PK_c0947efd9f3db2dcc010164d20b" PRIMARY KEY ("id"))`,
    );
    await queryRunner.query(`CREATE UNIQUE INDEX "servers_qualified_name" ON "servers"  ("namespace_id", "name") `);
    await queryRunner.query(
      `ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_account_fk" FOREIGN KEY ("account_id") REFERENCES "accounts"("id") ON DELETE CASCADE ON UPDATE NO ACTION`,
    );
    await queryRunner.query(
      `ALTER TABLE "namespaces" ADD CONSTRAINT "namespaces_account_fk" FOREIGN KEY ("account_id") REFERENCES "accounts"("id") ON DELETE RESTRICT ON UPDATE NO ACTION`,
    );
    await queryRunner.query(
      `ALTER TABLE "connections" ADD CONSTRAINT "connections_namespace_fk" FOREIGN KEY ("namespace_id") REFERENCES "namespaces"("id") ON DELETE CASCADE ON UPDATE NO ACTION`,
    );
    await queryRunner.query(
      `ALTER TABLE "servers" ADD CONSTRAINT "servers_namespace_fk" FOREIGN KEY ("namespace_id") REFERENCES "namespaces"("id") ON DELETE RESTRICT ON UPDATE NO ACTION`,
    );
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "servers" DROP CONSTRAINT "servers_namespace_fk"`);
    await queryRunner.query(`ALTER TABLE "connections" DROP CONSTRAINT "connections_namespace_fk"`);
    await queryRunner.query(`ALTER TABLE "namespaces" DROP CONSTRAINT "namespaces_account_fk"`);
    await queryRunner.query(`ALTER TABLE "api_keys" DROP CONSTRAINT "api_keys_account_fk"`);
    await queryRunner.query(`DROP INDEX "public"."servers_qualified_name"`);
    await queryRunner.query(`DROP TABLE "servers"`);
    await queryRunner.query(`DROP INDEX "public"."connections_metadata"`);
    await queryRunner.query(`DROP INDEX "public"."connections_id"`);
    await queryRunner.query(`DROP INDEX "public"."connections_newest"`);
    await queryRunner.query(`DROP INDEX "public"."connections_name"`);
    await queryRunner.query(`DROP INDEX "public"."connections_mcp_url"`);
    await queryRunner.query(`DROP TABLE "connections"`);
    await queryRunner.query(`DROP INDEX "public"."namespaces_account"`);
    await queryRunner.query(`DROP INDEX "public"."namespaces_name_unique"`);
    await queryRunner.query(`DROP TABLE "namespaces"`);
    await queryRunner.query(`DROP INDEX "public"."api_keys_expires"`);
    await queryRunner.query(`DROP INDEX "public"."api_keys_hash"`);
    await queryRunner.query(`DROP INDEX "public"."api_keys_account"`);
    await queryRunner.query(`DROP TABLE "api_keys"`);
    await queryRunner.query(`DROP INDEX "public"."accounts_name"`);
    await queryRunner.query(`DROP TABLE "accounts"`);
  }
}
