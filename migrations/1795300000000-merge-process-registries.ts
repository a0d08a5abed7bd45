import type { MigrationInterface, QueryRunner } from 'typeorm';

export class MergeProcessRegistries1795300000000 implements MigrationInterface {
  name = 'MergeProcessRegistries1795300000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "hosting_placements" DROP CONSTRAINT "hosting_placements_host_fk"`);
    await queryRunner.query(`ALTER TABLE "uplink_tunnels" DROP CONSTRAINT "uplink_tunnels_process_fk"`);
    await queryRunner.query(`DROP TABLE "hosting_hosts"`);
    await queryRunner.query(`DROP TABLE "uplink_processes"`);
    await queryRunner.query(
      `CREATE TABLE "processes" ("id" uuid NOT NULL, "roles" text array NOT NULL, "address" text, "epoch" bigint GENERATED ALWAYS AS IDENTITY NOT NULL, "details" jsonb NOT NULL, "lease_until" TIMESTAMP(3) WITH TIME ZONE NOT NULL, CONSTRAINT "PK_566885de50f7d20a6df306c12e6" PRIMARY KEY ("id"))`,
    );
    // No process runs during a migration, so nothing is owned.
    await queryRunner.query(`UPDATE "hosting_placements" SET "host_id" = NULL`);
    await queryRunner.query(`ALTER TABLE "hosting_placements" ADD "epoch" bigint`);
    await queryRunner.query(`ALTER TABLE "uplink_tunnels" ADD "epoch" bigint NOT NULL DEFAULT 0`);
    await queryRunner.query(`ALTER TABLE "uplink_tunnels" ALTER COLUMN "epoch" DROP DEFAULT`);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "uplink_tunnels" DROP COLUMN "epoch"`);
    await queryRunner.query(`ALTER TABLE "hosting_placements" DROP COLUMN "epoch"`);
    await queryRunner.query(`DROP TABLE "processes"`);
    await queryRunner.query(
      `CREATE TABLE "uplink_processes" ("id" uuid NOT NULL, "url" text, "lease_until" TIMESTAMP(3) WITH TIME ZONE NOT NULL, CONSTRAINT "PK_6d03d0a0ee498352c9e1733dd8c" PRIMARY KEY ("id"))`,
    );
    await queryRunner.query(
      `CREATE TABLE "hosting_hosts" ("id" uuid NOT NULL, "url" text, "data_id" uuid NOT NULL, "engines" jsonb NOT NULL, "lease_until" TIMESTAMP(3) WITH TIME ZONE NOT NULL, CONSTRAINT "PK_af74ed746df2271995675872753" PRIMARY KEY ("id"))`,
    );
    await queryRunner.query(`UPDATE "hosting_placements" SET "host_id" = NULL`);
    await queryRunner.query(`DELETE FROM "uplink_tunnels"`);
    await queryRunner.query(
      `ALTER TABLE "uplink_tunnels" ADD CONSTRAINT "uplink_tunnels_process_fk" FOREIGN KEY ("process_id") REFERENCES "uplink_processes"("id") ON DELETE CASCADE ON UPDATE NO ACTION`,
    );
    await queryRunner.query(
      `ALTER TABLE "hosting_placements" ADD CONSTRAINT "hosting_placements_host_fk" FOREIGN KEY ("host_id") REFERENCES "hosting_hosts"("id") ON DELETE SET NULL ON UPDATE NO ACTION`,
    );
  }
}
