import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Marks of client sessions with a log level or subscriptions, which answer 404 after a restart. */
export class SessionMarks1795417000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      'CREATE TABLE session_marks (session text NOT NULL, expires_at timestamptz NOT NULL, CONSTRAINT "PK_session_marks" PRIMARY KEY (session))',
    );
    await runner.query('CREATE INDEX session_marks_expiry ON session_marks (expires_at)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE session_marks');
  }
}
