import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Keys with scopes, last address and rotation; visibility of servers; grants of single servers and connections; who called.
 */
export class Access1795430000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE api_keys
        ADD COLUMN scopes text[],
        ADD COLUMN last_address text,
        ADD COLUMN replaced_by uuid CONSTRAINT api_keys_replaced_by_fk REFERENCES api_keys (id) ON DELETE SET NULL;
      CREATE INDEX api_keys_replaced_by ON api_keys (replaced_by) WHERE replaced_by IS NOT NULL;
      ALTER TABLE servers
        ADD COLUMN visibility text NOT NULL DEFAULT 'public'
          CONSTRAINT servers_visibility CHECK (visibility IN ('public', 'private'));
      CREATE TABLE grants (
        id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
        subject_id uuid NOT NULL CONSTRAINT grants_subject_fk REFERENCES accounts (id) ON DELETE CASCADE,
        server_id uuid CONSTRAINT grants_server_fk REFERENCES servers (id) ON DELETE CASCADE,
        connection_id uuid CONSTRAINT grants_connection_fk REFERENCES connections (id) ON DELETE CASCADE,
        level text NOT NULL CONSTRAINT grants_level CHECK (level IN ('call', 'manage')),
        created_by uuid NOT NULL,
        created_at timestamptz(3) NOT NULL DEFAULT now(),
        CONSTRAINT grants_target CHECK (num_nonnulls(server_id, connection_id) = 1)
      );
      CREATE UNIQUE INDEX grants_server ON grants (server_id, subject_id);
      CREATE UNIQUE INDEX grants_connection ON grants (connection_id, subject_id);
      CREATE INDEX grants_subject ON grants (subject_id);
      ALTER TABLE invocations
        ADD COLUMN caller_account uuid,
        ADD COLUMN caller_kind text,
        ADD COLUMN caller_id uuid,
        ADD COLUMN caller_client text;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE invocations
        DROP COLUMN caller_account, DROP COLUMN caller_kind, DROP COLUMN caller_id, DROP COLUMN caller_client;
      DROP TABLE grants;
      ALTER TABLE servers DROP COLUMN visibility;
      ALTER TABLE api_keys DROP COLUMN scopes, DROP COLUMN last_address, DROP COLUMN replaced_by;
    `);
  }
}
