import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Ids of the tasks that clients started, for the lists of their callers. */
export class McpTasks1795427000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      'CREATE TABLE mcp_tasks (task text NOT NULL, owner text NOT NULL, created_at timestamptz NOT NULL, expires_at timestamptz NOT NULL, CONSTRAINT "PK_mcp_tasks" PRIMARY KEY (task))',
    );
    await runner.query('CREATE INDEX mcp_tasks_owner ON mcp_tasks (owner, created_at)');
    await runner.query('CREATE INDEX mcp_tasks_expiry ON mcp_tasks (expires_at)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE mcp_tasks');
  }
}
