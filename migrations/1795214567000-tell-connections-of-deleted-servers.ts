import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The text a call of such a connection is answered with (ServerGoneError). */
const message = `'The server ' || "server_name" || ' was deleted. One that is registered anew under this name is another server: connect to it.'`;

export class TellConnectionsOfDeletedServers1795214567000 implements MigrationInterface {
  name = 'TellConnectionsOfDeletedServers1795214567000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    // By hand: whichever way a server goes, the same statement takes it from its connections (SET NULL) and ends their status.
    await queryRunner.query(`
      CREATE FUNCTION "connections_lose_server"() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        NEW."status_state" := 'error';
        NEW."status_reason" := 'server_deleted';
        NEW."status_message" := ${message.replace('"server_name"', 'NEW."server_name"')};
        NEW."status_inputs" := NULL;
        NEW."status_since" := now();
        NEW."status_seen_at" := now();
        NEW."next_check_at" := NULL;
        NEW."check_failures" := 0;
        RETURN NEW;
      END $$`);
    await queryRunner.query(
      `CREATE TRIGGER "connections_lose_server" BEFORE UPDATE OF "server_id" ON "connections" FOR EACH ROW
         WHEN (OLD."server_id" IS NOT NULL AND NEW."server_id" IS NULL AND NEW."mock" IS NULL)
         EXECUTE FUNCTION "connections_lose_server"()`,
    );
    await queryRunner.query(
      `UPDATE "connections" SET "status_state" = 'error', "status_reason" = 'server_deleted', "status_message" = ${message},
              "status_inputs" = NULL, "status_since" = now(), "status_seen_at" = now(), "next_check_at" = NULL
        WHERE "target_kind" = 'server' AND "server_id" IS NULL AND "mock" IS NULL AND "status_reason" <> 'server_deleted'`,
    );
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP TRIGGER "connections_lose_server" ON "connections"`);
    await queryRunner.query(`DROP FUNCTION "connections_lose_server"()`);
  }
}
