import type { MigrationInterface, QueryRunner } from 'typeorm';

export class CountMockUses1795330000000 implements MigrationInterface {
  name = 'CountMockUses1795330000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "connection_mocks" DROP COLUMN "things"`);
    await queryRunner.query(`ALTER TABLE "connection_mocks" DROP COLUMN "counters"`);
    await queryRunner.query(`ALTER TABLE "connection_mocks" ADD "uses" jsonb NOT NULL DEFAULT '{}'`);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "connection_mocks" DROP COLUMN "uses"`);
    await queryRunner.query(`ALTER TABLE "connection_mocks" ADD "counters" text`);
    await queryRunner.query(`ALTER TABLE "connection_mocks" ADD "things" text`);
  }
}
