import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The operator suspends namespaces, servers and connections. */
export class Suspensions1795700000200 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    for (const table of ['namespaces', 'servers', 'connections']) {
      await runner.query(`ALTER TABLE ${table} ADD suspended jsonb`);
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const table of ['namespaces', 'servers', 'connections']) {
      await runner.query(`ALTER TABLE ${table} DROP COLUMN suspended`);
    }
  }
}
