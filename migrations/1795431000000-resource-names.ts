import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The name of an MCP server in its own metadata, for the pages of an authorization. */
export class ResourceNames1795431000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE pending_authorizations ADD COLUMN resource_name text');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE pending_authorizations DROP COLUMN resource_name');
  }
}
