import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * One row per request for the server's and the connection's view. The old log of connections is not moved: its ids are not
 * those of the rows of servers. By hand: TypeORM knows no partitions.
 */
export class JoinInvocations1795222000000 implements MigrationInterface {
  name = 'JoinInvocations1795222000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP TABLE "connection_lines"`);
    await queryRunner.query(`DROP TABLE "connection_invocations"`);
    await queryRunner.query(
      `ALTER TABLE "invocations"
         ALTER COLUMN "server_id" DROP NOT NULL,
         ADD COLUMN "connection_id" uuid,
         ADD COLUMN "call" jsonb,
         ADD CONSTRAINT "invocations_owner" CHECK ("server_id" IS NOT NULL OR "connection_id" IS NOT NULL)`,
    );
    await queryRunner.query(
      `CREATE INDEX "invocations_newest_of_connection" ON "invocations" ("connection_id", "id" DESC)
        WHERE "connection_id" IS NOT NULL`,
    );
    await queryRunner.query(`DROP TRIGGER servers_leave_invocations ON servers`);
    await queryRunner.query(`DROP FUNCTION note_invocation_garbage`);
    await queryRunner.query(
      `CREATE TABLE "deleted_invocation_owners" (
         "owner_id" uuid NOT NULL PRIMARY KEY,
         "kind" text NOT NULL CHECK ("kind" IN ('server', 'connection')),
         "deleted_at" TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT now(),
         "due_at" TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT now())`,
    );
    await queryRunner.query(
      `INSERT INTO "deleted_invocation_owners" SELECT server_id, 'server', deleted_at, due_at FROM "invocation_garbage"`,
    );
    await queryRunner.query(`DROP TABLE "invocation_garbage"`);
    await queryRunner.query(
      `CREATE FUNCTION note_deleted_invocation_owner() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN
         INSERT INTO deleted_invocation_owners (owner_id, kind) SELECT id, TG_ARGV[0] FROM gone ON CONFLICT DO NOTHING;
         RETURN NULL;
       END $$`,
    );
    for (const kind of ['server', 'connection']) {
      await queryRunner.query(
        `CREATE TRIGGER ${kind}s_leave_invocations AFTER DELETE ON ${kind}s
           REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION note_deleted_invocation_owner('${kind}')`,
      );
    }
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    for (const kind of ['server', 'connection']) {
      await queryRunner.query(`DROP TRIGGER ${kind}s_leave_invocations ON ${kind}s`);
    }
    await queryRunner.query(`DROP FUNCTION note_deleted_invocation_owner`);
    await queryRunner.query(
      `CREATE TABLE "invocation_garbage" (
         "server_id" uuid NOT NULL PRIMARY KEY,
         "deleted_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL DEFAULT now(),
         "due_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL DEFAULT now())`,
    );
    await queryRunner.query(
      `INSERT INTO "invocation_garbage" SELECT owner_id, deleted_at, due_at FROM "deleted_invocation_owners" WHERE kind = 'server'`,
    );
    await queryRunner.query(`DROP TABLE "deleted_invocation_owners"`);
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
    await queryRunner.query(`DELETE FROM "invocations" WHERE "server_id" IS NULL`);
    await queryRunner.query(`DROP INDEX "invocations_newest_of_connection"`);
    await queryRunner.query(
      `ALTER TABLE "invocations" DROP CONSTRAINT "invocations_owner", DROP COLUMN "call", DROP COLUMN "connection_id",
         ALTER COLUMN "server_id" SET NOT NULL`,
    );
    await queryRunner.query(
      `CREATE TABLE "connection_invocations" ("id" uuid NOT NULL, "connection_id" uuid NOT NULL, "at" TIMESTAMP(3) WITH TIME ZONE NOT NULL, "method" text NOT NULL, "url" text NOT NULL, "rpc_method" text, "tool_name" text, "status" integer NOT NULL, "outcome" text NOT NULL, "failure_name" text, "failure_message" text, "guard_ms" real, "queue_ms" real, "connect_ms" real, "first_byte_ms" real, "total_ms" real NOT NULL, CONSTRAINT "connection_invocations_outcome" CHECK ("outcome" IN ('ok', 'exception', 'canceled', 'denied')), CONSTRAINT "PK_f2c1e23c2a6aff79959e2683c89" PRIMARY KEY ("id"))`,
    );
    await queryRunner.query(`CREATE INDEX "connection_invocations_at" ON "connection_invocations"  ("at") `);
    await queryRunner.query(
      `CREATE INDEX "connection_invocations_newest" ON "connection_invocations"  ("connection_id", "at", "id") `,
    );
    await queryRunner.query(
      `ALTER TABLE "connection_invocations" ADD CONSTRAINT "connection_invocations_connection_fk" FOREIGN KEY ("connection_id") REFERENCES "connections"("id") ON DELETE CASCADE ON UPDATE NO ACTION`,
    );
    await queryRunner.query(
      `CREATE TABLE "connection_lines" ("seq" bigint GENERATED ALWAYS AS IDENTITY NOT NULL, "connection_id" uuid NOT NULL, "invocation_id" uuid NOT NULL, "at" TIMESTAMP(3) WITH TIME ZONE NOT NULL, "level" text, "name" text, "message" text NOT NULL, CONSTRAINT "PK_93b616bc312fc41378734f7f7d9" PRIMARY KEY ("seq"))`,
    );
    await queryRunner.query(`CREATE INDEX "connection_lines_at" ON "connection_lines"  ("at") `);
    await queryRunner.query(`CREATE INDEX "connection_lines_newest" ON "connection_lines"  ("connection_id", "seq") `);
    await queryRunner.query(
      `CREATE INDEX "connection_lines_invocation" ON "connection_lines"  ("invocation_id", "seq") `,
    );
    await queryRunner.query(
      `ALTER TABLE "connection_lines" ADD CONSTRAINT "connection_lines_connection_fk" FOREIGN KEY ("connection_id") REFERENCES "connections"("id") ON DELETE CASCADE ON UPDATE NO ACTION`,
    );
  }
}
