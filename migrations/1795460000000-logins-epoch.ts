import type { MigrationInterface, QueryRunner } from 'typeorm';

/** A count of what ends the logins of an account. */
export class LoginsEpoch1795460000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE accounts ADD COLUMN logins_epoch integer NOT NULL DEFAULT 0');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE accounts DROP COLUMN logins_epoch');
  }
}
