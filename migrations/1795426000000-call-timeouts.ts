import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Silence after which calls of a connection fail at MCP endpoints; null for the default. */
export class CallTimeouts1795426000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE connections ADD call_timeout_ms integer');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE connections DROP COLUMN call_timeout_ms');
  }
}
