import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Organizations have members. */
export class Memberships1795620000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE memberships (
        organization_id uuid NOT NULL,
        account_id uuid NOT NULL,
        role text NOT NULL,
        created_by uuid NOT NULL,
        created_at timestamptz(3) NOT NULL DEFAULT now(),
        CONSTRAINT memberships_pk PRIMARY KEY (organization_id, account_id),
        CONSTRAINT memberships_role CHECK (role IN ('owner', 'editor', 'member', 'guest')),
        CONSTRAINT memberships_organization_fk FOREIGN KEY (organization_id) REFERENCES accounts(id) ON DELETE CASCADE,
        CONSTRAINT memberships_account_fk FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE
      )`);
    await runner.query(`CREATE INDEX memberships_account ON memberships (account_id)`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP TABLE memberships`);
  }
}
