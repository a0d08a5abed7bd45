import type { MigrationInterface, QueryRunner } from 'typeorm';

export class AuthorizeByAdapters1795210482101 implements MigrationInterface {
  name = 'AuthorizeByAdapters1795210482101';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "pending_authorizations" DROP CONSTRAINT "pending_authorizations_client_fk"`);
    await queryRunner.query(`ALTER TABLE "pending_authorizations" ALTER COLUMN "client_row_id" DROP NOT NULL`);
    await queryRunner.query(
      `ALTER TABLE "pending_authorizations" ADD CONSTRAINT "pending_authorizations_client_fk" FOREIGN KEY ("client_row_id") REFERENCES "oauth_clients"("id") ON DELETE CASCADE ON UPDATE NO ACTION`,
    );
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DELETE FROM "pending_authorizations" WHERE "client_row_id" IS NULL`);
    await queryRunner.query(`ALTER TABLE "pending_authorizations" DROP CONSTRAINT "pending_authorizations_client_fk"`);
    await queryRunner.query(`ALTER TABLE "pending_authorizations" ALTER COLUMN "client_row_id" SET NOT NULL`);
    await queryRunner.query(
      `ALTER TABLE "pending_authorizations" ADD CONSTRAINT "pending_authorizations_client_fk" FOREIGN KEY ("client_row_id") REFERENCES "oauth_clients"("id") ON DELETE CASCADE ON UPDATE NO ACTION`,
    );
  }
}
