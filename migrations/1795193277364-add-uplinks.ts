import type { MigrationInterface, QueryRunner } from 'typeorm';

export class AddUplinks1795193277364 implements MigrationInterface {
  name = 'AddUplinks1795193277364';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      `CREATE TABLE "uplink_processes" ("id" uuid NOT NULL, "url" text, "lease_until" TIMESTAMP(3) WITH TIME ZONE NOT NULL, CONSTRAINT "PK_6d03d0a0ee498352c9e1733dd8c" PRIMARY KEY ("id"))`,
    );
    await queryRunner.query(
      `CREATE TABLE "uplink_tunnels" ("connection_id" uuid NOT NULL, "process_id" uuid NOT NULL, "tunnel" bigint GENERATED ALWAYS AS IDENTITY NOT NULL, "created_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL DEFAULT now(), CONSTRAINT "PK_f9495108ab2a4ef14b213910edc" PRIMARY KEY ("connection_id"))`,
    );
    await queryRunner.query(`CREATE INDEX "uplink_tunnels_process" ON "uplink_tunnels"  ("process_id") `);
    await queryRunner.query(
      `ALTER TABLE "uplink_tunnels" ADD CONSTRAINT "uplink_tunnels_connection_fk" FOREIGN KEY ("connection_id") REFERENCES "connections"("id") ON DELETE CASCADE ON UPDATE NO ACTION`,
    );
    await queryRunner.query(
      `ALTER TABLE "uplink_tunnels" ADD CONSTRAINT "uplink_tunnels_process_fk" FOREIGN KEY ("process_id") REFERENCES "uplink_processes"("id") ON DELETE CASCADE ON UPDATE NO ACTION`,
    );
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "uplink_tunnels" DROP CONSTRAINT "uplink_tunnels_process_fk"`);
    await queryRunner.query(`ALTER TABLE "uplink_tunnels" DROP CONSTRAINT "uplink_tunnels_connection_fk"`);
    await queryRunner.query(`DROP INDEX "public"."uplink_tunnels_process"`);
    await queryRunner.query(`DROP TABLE "uplink_tunnels"`);
    await queryRunner.query(`DROP TABLE "uplink_processes"`);
  }
}
