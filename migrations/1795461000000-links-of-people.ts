import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The person whose setup link an authorization began with. */
export class LinksOfPeople1795461000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE pending_authorizations ADD COLUMN account_id uuid;
      ALTER TABLE pending_authorizations ADD COLUMN logins_epoch integer NOT NULL DEFAULT 0;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE pending_authorizations DROP COLUMN logins_epoch;
      ALTER TABLE pending_authorizations DROP COLUMN account_id;
    `);
  }
}
