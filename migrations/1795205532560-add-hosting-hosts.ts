import type { MigrationInterface, QueryRunner } from 'typeorm';

export class AddHostingHosts1795205532560 implements MigrationInterface {
  name = 'AddHostingHosts1795205532560';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      `CREATE TABLE "hosting_hosts" ("id" uuid NOT NULL, "url" text, "data_id" uuid NOT NULL, "engines" jsonb NOT NULL, "lease_until" TIMESTAMP(3) WITH TIME ZONE NOT NULL, CONSTRAINT "PK_af74ed746df2271995675872753" PRIMARY KEY ("id"))`,
    );
    await queryRunner.query(
      `CREATE TABLE "hosting_placements" ("owner_id" uuid NOT NULL, "host_id" uuid, "data_id" uuid NOT NULL, CONSTRAINT "PK_f43cffc28874ba639118e7286d9" PRIMARY KEY ("owner_id"))`,
    );
    await queryRunner.query(`CREATE INDEX "hosting_placements_host" ON "hosting_placements"  ("host_id") `);
    await queryRunner.query(
      `ALTER TABLE "hosting_placements" ADD CONSTRAINT "hosting_placements_host_fk" FOREIGN KEY ("host_id") REFERENCES "hosting_hosts"("id") ON DELETE SET NULL ON UPDATE NO ACTION`,
    );
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "hosting_placements" DROP CONSTRAINT "hosting_placements_host_fk"`);
    await queryRunner.query(`DROP INDEX "public"."hosting_placements_host"`);
    await queryRunner.query(`DROP TABLE "hosting_placements"`);
    await queryRunner.query(`DROP TABLE "hosting_hosts"`);
  }
}
