import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Probes of an account count against its limits. */
export class Probes1795720000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`CREATE TABLE probes (
      id uuid DEFAULT gen_random_uuid() NOT NULL PRIMARY KEY,
      account_id uuid NOT NULL CONSTRAINT probes_account_fk REFERENCES accounts (id) ON DELETE CASCADE,
      started_at timestamptz(3) DEFAULT now() NOT NULL,
      ended_at timestamptz(3))`);
    await runner.query(`CREATE INDEX probes_account ON probes (account_id, started_at)`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP TABLE probes`);
  }
}
