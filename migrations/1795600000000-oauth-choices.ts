import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The owner of a connection may choose issuer, client and scopes of its authorization. */
export class OauthChoices1795600000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE connections ADD oauth jsonb, ADD sealed_oauth_secret text`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE connections DROP COLUMN oauth, DROP COLUMN sealed_oauth_secret`);
  }
}
