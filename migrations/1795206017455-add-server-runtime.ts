import type { MigrationInterface, QueryRunner } from 'typeorm';

export class AddServerRuntime1795206017455 implements MigrationInterface {
  name = 'AddServerRuntime1795206017455';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      `CREATE TABLE "server_runtime" ("server_id" uuid NOT NULL, "egress_allow" text array, "log_payloads" boolean NOT NULL DEFAULT false, CONSTRAINT "server_runtime_pk" PRIMARY KEY ("server_id"))`,
    );
    await queryRunner.query(
      `ALTER TABLE "server_runtime" ADD CONSTRAINT "server_runtime_server_fk" FOREIGN KEY ("server_id") REFERENCES "servers"("id") ON DELETE CASCADE ON UPDATE NO ACTION`,
    );
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "server_runtime" DROP CONSTRAINT "server_runtime_server_fk"`);
    await queryRunner.query(`DROP TABLE "server_runtime"`);
  }
}
