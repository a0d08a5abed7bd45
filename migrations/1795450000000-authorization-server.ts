import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Clients, grants and tokens of the OAuth authorization server. */
export class AuthorizationServer1795450000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE as_clients (
        id text PRIMARY KEY,
        sealed text,
        document text,
        address text,
        created_at timestamptz(3) NOT NULL DEFAULT now(),
        first_used_at timestamptz(3),
        last_used_at timestamptz(3),
        CONSTRAINT as_clients_source CHECK (num_nonnulls(sealed, document) = 1)
      );
      CREATE INDEX as_clients_unfinished ON as_clients (created_at) WHERE first_used_at IS NULL;
      CREATE TABLE as_grants (
        id uuid PRIMARY KEY,
        account_id uuid NOT NULL CONSTRAINT as_grants_account_fk REFERENCES accounts (id) ON DELETE CASCADE,
        client_id text NOT NULL,
        client_name text NOT NULL,
        client_host text,
        redirect_key text NOT NULL,
        redirects_hash bytea NOT NULL,
        resource text NOT NULL,
        connection_id uuid CONSTRAINT as_grants_connection_fk REFERENCES connections (id) ON DELETE CASCADE,
        namespace_id uuid CONSTRAINT as_grants_namespace_fk REFERENCES namespaces (id) ON DELETE CASCADE,
        server_id uuid CONSTRAINT as_grants_server_fk REFERENCES servers (id) ON DELETE CASCADE,
        is_remembered boolean NOT NULL DEFAULT false,
        created_at timestamptz(3) NOT NULL DEFAULT now(),
        last_used_at timestamptz(3),
        expires_at timestamptz(3) NOT NULL,
        CONSTRAINT as_grants_target CHECK (num_nonnulls(connection_id, namespace_id, server_id) = 1)
      );
      CREATE UNIQUE INDEX as_grants_one
        ON as_grants (account_id, client_id, redirect_key, coalesce(connection_id, namespace_id, server_id));
      CREATE INDEX as_grants_connection ON as_grants (connection_id) WHERE connection_id IS NOT NULL;
      CREATE INDEX as_grants_namespace ON as_grants (namespace_id) WHERE namespace_id IS NOT NULL;
      CREATE INDEX as_grants_server ON as_grants (server_id) WHERE server_id IS NOT NULL;
      CREATE TABLE as_records (
        kind text NOT NULL,
        id_hash bytea NOT NULL,
        grant_id uuid CONSTRAINT as_records_grant_fk REFERENCES as_grants (id) ON DELETE CASCADE,
        family text,
        rotation integer NOT NULL DEFAULT 0,
        sealed text NOT NULL,
        created_at timestamptz(3) NOT NULL DEFAULT now(),
        consumed_at timestamptz(3),
        grace_until timestamptz(3),
        expires_at timestamptz(3) NOT NULL,
        CONSTRAINT as_records_pk PRIMARY KEY (kind, id_hash)
      );
      CREATE INDEX as_records_grant ON as_records (grant_id) WHERE grant_id IS NOT NULL;
      CREATE INDEX as_records_expires ON as_records (expires_at);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE as_records, as_grants, as_clients');
  }
}
