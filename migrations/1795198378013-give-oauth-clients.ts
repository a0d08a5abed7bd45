import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The trigger of `servers` and `connections`; see there why pending authorizations go first. */
const forgetting = (also: string) => `
      CREATE OR REPLACE FUNCTION "forget_upstream_credentials"() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        DELETE FROM "pending_authorizations" WHERE "owner_kind" = TG_ARGV[0] AND "owner_id" = OLD."id";
        DELETE FROM "upstream_credentials" WHERE "owner_kind" = TG_ARGV[0] AND "owner_id" = OLD."id";${also}
        RETURN NULL;
      END $$`;

export class GiveOauthClients1795198378013 implements MigrationInterface {
  name = 'GiveOauthClients1795198378013';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "oauth_clients" ADD "owner_kind" text`);
    await queryRunner.query(`ALTER TABLE "oauth_clients" ADD "owner_id" uuid`);
    await queryRunner.query(`ALTER TABLE "oauth_clients" ADD "refused_at" TIMESTAMP(3) WITH TIME ZONE`);
    await queryRunner.query(
      `CREATE UNIQUE INDEX "oauth_clients_owner" ON "oauth_clients"  ("owner_kind", "owner_id", "issuer", "redirect_uri") WHERE "owner_id" IS NOT NULL`,
    );
    await queryRunner.query(
      `ALTER TABLE "oauth_clients" ADD CONSTRAINT "oauth_clients_given" CHECK (("owner_kind" IS NOT NULL) = ("kind" = 'given') AND ("owner_id" IS NOT NULL) = ("kind" = 'given'))`,
    );
    await queryRunner.query(
      `ALTER TABLE "oauth_clients" ADD CONSTRAINT "oauth_clients_owner_kind" CHECK ("owner_kind" IN ('server', 'connection'))`,
    );
    // By hand: what has changed behind the same name is not seen, nor are functions.
    await queryRunner.query(`ALTER TABLE "oauth_clients" DROP CONSTRAINT "oauth_clients_kind"`);
    await queryRunner.query(
      `ALTER TABLE "oauth_clients" ADD CONSTRAINT "oauth_clients_kind" CHECK ("kind" IN ('document', 'registered', 'given'))`,
    );
    await queryRunner.query(`DROP INDEX "public"."oauth_clients_issuer"`);
    await queryRunner.query(
      `CREATE UNIQUE INDEX "oauth_clients_issuer" ON "oauth_clients"  ("issuer", "redirect_uri") WHERE "owner_id" IS NULL`,
    );
    await queryRunner.query(
      forgetting(`
        DELETE FROM "oauth_clients" WHERE "owner_kind" = TG_ARGV[0] AND "owner_id" = OLD."id";`),
    );
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(forgetting(''));
    await queryRunner.query(`DELETE FROM "oauth_clients" WHERE "kind" = 'given'`);
    await queryRunner.query(`DROP INDEX "public"."oauth_clients_issuer"`);
    await queryRunner.query(
      `CREATE UNIQUE INDEX "oauth_clients_issuer" ON "oauth_clients"  ("issuer", "redirect_uri") `,
    );
    await queryRunner.query(`ALTER TABLE "oauth_clients" DROP CONSTRAINT "oauth_clients_kind"`);
    await queryRunner.query(
      `ALTER TABLE "oauth_clients" ADD CONSTRAINT "oauth_clients_kind" CHECK ("kind" IN ('document', 'registered'))`,
    );
    await queryRunner.query(`ALTER TABLE "oauth_clients" DROP CONSTRAINT "oauth_clients_owner_kind"`);
    await queryRunner.query(`ALTER TABLE "oauth_clients" DROP CONSTRAINT "oauth_clients_given"`);
    await queryRunner.query(`DROP INDEX "public"."oauth_clients_owner"`);
    await queryRunner.query(`ALTER TABLE "oauth_clients" DROP COLUMN "refused_at"`);
    await queryRunner.query(`ALTER TABLE "oauth_clients" DROP COLUMN "owner_id"`);
    await queryRunner.query(`ALTER TABLE "oauth_clients" DROP COLUMN "owner_kind"`);
  }
}
