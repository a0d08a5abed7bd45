import type { MigrationInterface, QueryRunner } from 'typeorm';

export class AddSimulatorDays1795194797122 implements MigrationInterface {
  name = 'AddSimulatorDays1795194797122';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      `CREATE TABLE "simulator_days" ("day" date NOT NULL, "namespace_id" uuid NOT NULL, "calls" integer NOT NULL, CONSTRAINT "PK_6ca4717358223368dbd9a6d696c" PRIMARY KEY ("day", "namespace_id"))`,
    );
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP TABLE "simulator_days"`);
  }
}
