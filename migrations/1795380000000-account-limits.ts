import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Limits of single accounts that differ from the defaults, and the size of each account's logs by day. */
export class AccountLimits1795380000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `CREATE TABLE account_limits (
         account_id uuid NOT NULL,
         name text NOT NULL,
         value bigint NOT NULL,
         CONSTRAINT account_limits_pkey PRIMARY KEY (account_id, name),
         CONSTRAINT account_limits_account_fk FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE
       )`,
    );
    await runner.query(
      `CREATE TABLE account_log_days (
         account_id uuid NOT NULL,
         day date NOT NULL,
         bytes bigint NOT NULL,
         CONSTRAINT account_log_days_pkey PRIMARY KEY (account_id, day),
         CONSTRAINT account_log_days_account_fk FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE
       )`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE account_log_days');
    await runner.query('DROP TABLE account_limits');
  }
}
