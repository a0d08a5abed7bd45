import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Links to the page of an authorization are signed, so no hash of a token is stored for them. */
export class SignAuthorizationLinks1795250000000 implements MigrationInterface {
  name = 'SignAuthorizationLinks1795250000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP INDEX "pending_authorizations_token"`);
    await queryRunner.query(`ALTER TABLE "pending_authorizations" DROP COLUMN "token_hash"`);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DELETE FROM "pending_authorizations"`);
    await queryRunner.query(`ALTER TABLE "pending_authorizations" ADD "token_hash" bytea NOT NULL`);
    await queryRunner.query(
      `CREATE UNIQUE INDEX "pending_authorizations_token" ON "pending_authorizations" ("token_hash")`,
    );
  }
}
