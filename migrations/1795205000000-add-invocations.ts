import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * By hand: TypeORM knows no partitions. One partition a day, made ahead by the workers and dropped as a whole; no foreign
 * keys, which would look at a server for every row. Rows of a deleted server are found through `invocation_garbage`.
 * What search reads is kept in lower case beside the lines, so that it is one text with no names of members in it.
 */
export class AddInvocations1795205000000 implements MigrationInterface {
  name = 'AddInvocations1795205000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      `CREATE TABLE "invocations" (
         "id" uuid NOT NULL,
         "server_id" uuid NOT NULL,
         "release_id" uuid,
         "at" TIMESTAMP(3) WITH TIME ZONE NOT NULL,
         "day" date NOT NULL,
         "status" integer,
         "cpu_ms" real,
         "wall_ms" real,
         "left_out" integer NOT NULL DEFAULT 0,
         "method" text,
         "url" text,
         "rpc_method" text,
         "tool_name" text,
         "outcome" text,
         "lines" jsonb NOT NULL DEFAULT '[]',
         "exceptions" jsonb NOT NULL DEFAULT '[]',
         "payload" jsonb,
         "search_text" text NOT NULL DEFAULT '',
         "jobs" integer[] NOT NULL,
         CONSTRAINT "invocations_pk" PRIMARY KEY ("id", "day")
       ) PARTITION BY RANGE ("day")`,
    );
    await queryRunner.query(`CREATE INDEX "invocations_newest" ON "invocations" ("server_id", "id" DESC)`);
    await queryRunner.query(
      `CREATE TABLE "invocation_garbage" (
         "server_id" uuid NOT NULL PRIMARY KEY,
         "deleted_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL DEFAULT now(),
         "due_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL DEFAULT now())`,
    );
    await queryRunner.query(
      `CREATE FUNCTION note_invocation_garbage() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN
         INSERT INTO invocation_garbage (server_id) SELECT id FROM gone ON CONFLICT DO NOTHING;
         RETURN NULL;
       END $$`,
    );
    await queryRunner.query(
      `CREATE TRIGGER servers_leave_invocations AFTER DELETE ON servers
         REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION note_invocation_garbage()`,
    );
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP TRIGGER servers_leave_invocations ON servers`);
    await queryRunner.query(`DROP FUNCTION note_invocation_garbage`);
    await queryRunner.query(`DROP TABLE "invocation_garbage"`);
    await queryRunner.query(`DROP TABLE "invocations"`);
  }
}
