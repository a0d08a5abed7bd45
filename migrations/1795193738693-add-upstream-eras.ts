import type { MigrationInterface, QueryRunner } from 'typeorm';

export class AddUpstreamEras1795193738693 implements MigrationInterface {
  name = 'AddUpstreamEras1795193738693';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      `CREATE TABLE "upstream_eras" ("endpoint" text NOT NULL, "kind" text NOT NULL, "reason" text NOT NULL, "learned_at" TIMESTAMP WITH TIME ZONE NOT NULL, "expires_at" TIMESTAMP WITH TIME ZONE NOT NULL, CONSTRAINT "upstream_eras_kind" CHECK ("kind" IN ('modern', 'streamable', 'sse')), CONSTRAINT "PK_4be37d5c9a944567ed9fad55251" PRIMARY KEY ("endpoint"))`,
    );
    await queryRunner.query(`CREATE INDEX "upstream_eras_expiry" ON "upstream_eras"  ("expires_at") `);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP INDEX "public"."upstream_eras_expiry"`);
    await queryRunner.query(`DROP TABLE "upstream_eras"`);
  }
}
