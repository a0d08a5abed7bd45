import type { MigrationInterface, QueryRunner } from 'typeorm';

/** An authorization that a setup link began has the credential that the link was issued to. */
export class SetupLinkHolders1795730000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE pending_authorizations ADD key_id uuid,
      ALTER logins_epoch DROP NOT NULL, ALTER logins_epoch DROP DEFAULT`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`UPDATE pending_authorizations SET logins_epoch = 0 WHERE logins_epoch IS NULL`);
    await runner.query(`ALTER TABLE pending_authorizations DROP key_id,
      ALTER logins_epoch SET DEFAULT 0, ALTER logins_epoch SET NOT NULL`);
  }
}
