import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Of whom a marked session is, so that the marks of one are limited. */
export class MarksOfPrincipals1795462000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE session_marks ADD COLUMN principal text NOT NULL DEFAULT '';
      CREATE INDEX session_marks_principal ON session_marks (principal, expires_at, session);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      DROP INDEX session_marks_principal;
      ALTER TABLE session_marks DROP COLUMN principal;
    `);
  }
}
