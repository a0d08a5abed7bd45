import type { MigrationInterface, QueryRunner } from 'typeorm';

export class AddMocks1795194173573 implements MigrationInterface {
  name = 'AddMocks1795194173573';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      `CREATE TABLE "connection_mocks" ("connection_id" uuid NOT NULL, "seed" text NOT NULL, "server" jsonb NOT NULL, "calls" integer NOT NULL DEFAULT '0', "things" text, "counters" text, CONSTRAINT "PK_3e34531f2ba145b506d7e4681f6" PRIMARY KEY ("connection_id"))`,
    );
    await queryRunner.query(
      `CREATE TABLE "mock_calls" ("connection_id" uuid NOT NULL, "seq" integer NOT NULL, "tool" text NOT NULL, "arguments" text, "answer" text, "called_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL DEFAULT now(), CONSTRAINT "PK_c9f1822790c1f88af5ca59ce9ba" PRIMARY KEY ("connection_id", "seq"))`,
    );
    await queryRunner.query(
      `ALTER TABLE "connection_mocks" ADD CONSTRAINT "connection_mocks_connection_fk" FOREIGN KEY ("connection_id") REFERENCES "connections"("id") ON DELETE CASCADE ON UPDATE NO ACTION`,
    );
    await queryRunner.query(
      `ALTER TABLE "mock_calls" ADD CONSTRAINT "mock_calls_mock_fk" FOREIGN KEY ("connection_id") REFERENCES "connection_mocks"("connection_id") ON DELETE CASCADE ON UPDATE NO ACTION`,
    );
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "mock_calls" DROP CONSTRAINT "mock_calls_mock_fk"`);
    await queryRunner.query(`ALTER TABLE "connection_mocks" DROP CONSTRAINT "connection_mocks_connection_fk"`);
    await queryRunner.query(`DROP TABLE "mock_calls"`);
    await queryRunner.query(`DROP TABLE "connection_mocks"`);
  }
}
