import type { MigrationInterface, QueryRunner } from 'typeorm';

export class IndexAskedRescans1795221380984 implements MigrationInterface {
  name = 'IndexAskedRescans1795221380984';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      `CREATE INDEX "server_rescans_asked" ON "server_rescans"  ("asked_at") WHERE "asked_at" IS NOT NULL`,
    );
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP INDEX "public"."server_rescans_asked"`);
  }
}
