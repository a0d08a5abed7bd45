import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Everybody can find a restricted server; only accounts with a grant can call it. Servers keep their visibility. */
export class RestrictedServers1795700000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE servers DROP CONSTRAINT servers_visibility,
      ADD CONSTRAINT servers_visibility CHECK (visibility IN ('public', 'restricted', 'private')),
      ADD confirm_secrets boolean DEFAULT false NOT NULL`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`UPDATE servers SET visibility = 'private' WHERE visibility = 'restricted'`);
    await runner.query(`ALTER TABLE servers DROP CONSTRAINT servers_visibility,
      ADD CONSTRAINT servers_visibility CHECK (visibility IN ('public', 'private')), DROP COLUMN confirm_secrets`);
  }
}
