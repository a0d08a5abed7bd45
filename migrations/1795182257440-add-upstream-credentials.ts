import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Whose rows take their credentials along, and what they are called there. */
const owners = [
  ['servers', 'server'],
  ['connections', 'connection'],
] as const;

export class AddUpstreamCredentials1795182257440 implements MigrationInterface {
  name = 'AddUpstreamCredentials1795182257440';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      `CREATE TABLE "oauth_clients" ("id" uuid NOT NULL DEFAULT gen_random_uuid(), "issuer" text NOT NULL, "redirect_uri" text NOT NULL, "kind" text NOT NULL, "client_id" text NOT NULL, "sealed_secret" text, "auth_method" text, "secret_expires_at" TIMESTAMP(3) WITH TIME ZONE, "created_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL DEFAULT now(), CONSTRAINT "oauth_clients_kind" CHECK ("kind" IN ('document', 'registered')), CONSTRAINT "PK_c4759172d3431bae6f04e678e0d" PRIMARY KEY ("id"))`,
    );
    await queryRunner.query(
      `CREATE UNIQUE INDEX "oauth_clients_issuer" ON "oauth_clients"  ("issuer", "redirect_uri") `,
    );
    await queryRunner.query(
      `CREATE TABLE "pending_authorizations" ("id" uuid NOT NULL DEFAULT gen_random_uuid(), "owner_kind" text NOT NULL, "owner_id" uuid NOT NULL, "label" text NOT NULL, "upstream_url" text NOT NULL, "server" jsonb NOT NULL, "client_row_id" uuid NOT NULL, "resource" text NOT NULL, "scopes" text, "token_hash" bytea NOT NULL, "expires_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL, "started_at" TIMESTAMP(3) WITH TIME ZONE, "browser_hash" bytea, "state_hash" bytea, "sealed_verifier" text, "completed_at" TIMESTAMP(3) WITH TIME ZONE, "created_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL DEFAULT now(), CONSTRAINT "pending_authorizations_owner_kind" CHECK ("owner_kind" IN ('server', 'connection')), CONSTRAINT "PK_a362585d63351b5383ee26a1642" PRIMARY KEY ("id"))`,
    );
    await queryRunner.query(
      `CREATE INDEX "pending_authorizations_expires" ON "pending_authorizations"  ("expires_at") `,
    );
    await queryRunner.query(
      `CREATE INDEX "pending_authorizations_client" ON "pending_authorizations"  ("client_row_id") `,
    );
    await queryRunner.query(
      `CREATE UNIQUE INDEX "pending_authorizations_state" ON "pending_authorizations"  ("state_hash") `,
    );
    await queryRunner.query(
      `CREATE UNIQUE INDEX "pending_authorizations_token" ON "pending_authorizations"  ("token_hash") `,
    );
    await queryRunner.query(
      `CREATE INDEX "pending_authorizations_owner" ON "pending_authorizations"  ("owner_kind", "owner_id") `,
    );
    await queryRunner.query(
      `CREATE TABLE "upstream_credentials" ("id" uuid NOT NULL DEFAULT gen_random_uuid(), "owner_kind" text NOT NULL, "owner_id" uuid NOT NULL, "upstream_url" text NOT NULL, "server" jsonb NOT NULL, "client_row_id" uuid, "resource" text NOT NULL, "scopes" text, "sealed_tokens" text, "expires_at" TIMESTAMP(3) WITH TIME ZONE, "due_at" TIMESTAMP(3) WITH TIME ZONE, "generation" integer NOT NULL DEFAULT '1', "state" text NOT NULL, "refreshed_at" TIMESTAMP(3) WITH TIME ZONE, "failures" integer NOT NULL DEFAULT '0', "retry_at" TIMESTAMP(3) WITH TIME ZONE, "created_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL DEFAULT now(), CONSTRAINT "upstream_credentials_state" CHECK ("state" IN ('active', 'required')), CONSTRAINT "upstream_credentials_owner_kind" CHECK ("owner_kind" IN ('server', 'connection')), CONSTRAINT "PK_d4ec983d7bfd6fdbfd2d9d879fa" PRIMARY KEY ("id"))`,
    );
    await queryRunner.query(`CREATE INDEX "upstream_credentials_client" ON "upstream_credentials"  ("client_row_id") `);
    await queryRunner.query(
      `CREATE UNIQUE INDEX "upstream_credentials_owner" ON "upstream_credentials"  ("owner_kind", "owner_id") `,
    );
    await queryRunner.query(
      `ALTER TABLE "pending_authorizations" ADD CONSTRAINT "pending_authorizations_client_fk" FOREIGN KEY ("client_row_id") REFERENCES "oauth_clients"("id") ON DELETE CASCADE ON UPDATE NO ACTION`,
    );
    await queryRunner.query(
      `ALTER TABLE "upstream_credentials" ADD CONSTRAINT "upstream_credentials_client_fk" FOREIGN KEY ("client_row_id") REFERENCES "oauth_clients"("id") ON DELETE SET NULL ON UPDATE NO ACTION`,
    );
    // By hand: a credential belongs to a row of one of two tables, which no foreign key can say. Pending authorizations go
    // first: an answer that is being stored holds its row, and what it stores is then seen by the second statement.
    await queryRunner.query(`
      CREATE FUNCTION "forget_upstream_credentials"() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        DELETE FROM "pending_authorizations" WHERE "owner_kind" = TG_ARGV[0] AND "owner_id" = OLD."id";
        DELETE FROM "upstream_credentials" WHERE "owner_kind" = TG_ARGV[0] AND "owner_id" = OLD."id";
        RETURN NULL;
      END $$`);
    for (const [table, kind] of owners) {
      await queryRunner.query(
        `CREATE TRIGGER "${table}_forget_credentials" AFTER DELETE ON "${table}" FOR EACH ROW EXECUTE FUNCTION "forget_upstream_credentials"('${kind}')`,
      );
    }
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    for (const [table] of owners) await queryRunner.query(`DROP TRIGGER "${table}_forget_credentials" ON "${table}"`);
    await queryRunner.query(`DROP FUNCTION "forget_upstream_credentials"()`);
    await queryRunner.query(`ALTER TABLE "upstream_credentials" DROP CONSTRAINT "upstream_credentials_client_fk"`);
    await queryRunner.query(`ALTER TABLE "pending_authorizations" DROP CONSTRAINT "pending_authorizations_client_fk"`);
    await queryRunner.query(`DROP INDEX "public"."upstream_credentials_owner"`);
    await queryRunner.query(`DROP INDEX "public"."upstream_credentials_client"`);
    await queryRunner.query(`DROP TABLE "upstream_credentials"`);
    await queryRunner.query(`DROP INDEX "public"."pending_authorizations_owner"`);
    await queryRunner.query(`DROP INDEX "public"."pending_authorizations_token"`);
    await queryRunner.query(`DROP INDEX "public"."pending_authorizations_state"`);
    await queryRunner.query(`DROP INDEX "public"."pending_authorizations_client"`);
    await queryRunner.query(`DROP INDEX "public"."pending_authorizations_expires"`);
    await queryRunner.query(`DROP TABLE "pending_authorizations"`);
    await queryRunner.query(`DROP INDEX "public"."oauth_clients_issuer"`);
    await queryRunner.query(`DROP TABLE "oauth_clients"`);
  }
}
