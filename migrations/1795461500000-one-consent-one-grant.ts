import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Each consent is a grant of its own, with what it hangs on: the API key of the session, what the owner granted, the logins epoch
 * of the account. A grant of several logins becomes one for each. Refresh tokens know the one before them; those that were used
 * are good for another 60 s. A login whose right was withdrawn goes. Authorizations that wait know who began them.
 */
export class OneConsentOneGrant1795461500000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      DROP INDEX as_grants_one;
      ALTER TABLE as_grants
        ADD COLUMN address text,
        ADD COLUMN logins_epoch integer NOT NULL DEFAULT 0,
        ADD COLUMN key_id uuid CONSTRAINT as_grants_key_fk REFERENCES api_keys (id) ON DELETE CASCADE,
        ADD COLUMN right_id uuid CONSTRAINT as_grants_right_fk REFERENCES grants (id) ON DELETE CASCADE;
      UPDATE as_grants g SET logins_epoch = a.logins_epoch FROM accounts a WHERE a.id = g.account_id;
      UPDATE as_grants g SET right_id = r.id FROM grants r
       WHERE r.subject_id = g.account_id AND (r.connection_id = g.connection_id OR r.server_id = g.server_id);
      DELETE FROM as_grants g USING namespaces n, connections c
       WHERE c.id = g.connection_id AND n.id = c.namespace_id AND n.account_id <> g.account_id AND g.right_id IS NULL;
      DELETE FROM as_grants g USING namespaces n, servers s
       WHERE s.id = g.server_id AND n.id = s.namespace_id AND n.account_id <> g.account_id AND g.right_id IS NULL
         AND s.visibility <> 'public';
      CREATE INDEX as_grants_account ON as_grants (account_id, created_at);
      CREATE INDEX as_grants_key ON as_grants (key_id) WHERE key_id IS NOT NULL;
      CREATE INDEX as_grants_right ON as_grants (right_id) WHERE right_id IS NOT NULL;

      CREATE TEMPORARY TABLE split ON COMMIT DROP AS
        SELECT grant_id, family, gen_random_uuid() AS id
          FROM (SELECT grant_id, family, row_number() OVER (PARTITION BY grant_id ORDER BY max(created_at) DESC) AS rank
                  FROM as_records WHERE grant_id IS NOT NULL AND family IS NOT NULL GROUP BY grant_id, family) families
         WHERE rank > 1;
      INSERT INTO as_grants (id, account_id, client_id, client_name, client_host, redirect_key, redirects_hash, resource,
                             connection_id, namespace_id, server_id, is_remembered, created_at, last_used_at, expires_at,
                             logins_epoch, right_id)
        SELECT s.id, account_id, client_id, client_name, client_host, redirect_key, redirects_hash, resource,
               connection_id, namespace_id, server_id, is_remembered, created_at, last_used_at, expires_at,
               logins_epoch, right_id
          FROM split s JOIN as_grants g ON g.id = s.grant_id;
      UPDATE as_records r SET grant_id = s.id FROM split s WHERE r.grant_id = s.grant_id AND r.family = s.family;

      ALTER TABLE as_records
        DROP COLUMN family,
        DROP COLUMN rotation,
        ADD COLUMN predecessor bytea,
        ADD COLUMN address text,
        ADD COLUMN client_id text;
      UPDATE as_records SET grace_until = now() + interval '60 s'
       WHERE kind = 'RefreshToken' AND consumed_at IS NOT NULL AND grace_until IS NULL;
      DELETE FROM as_records WHERE kind = 'RefreshToken' AND consumed_at IS NULL AND grace_until IS NOT NULL;
      CREATE INDEX as_records_interactions ON as_records (created_at) WHERE kind = 'Interaction';
      CREATE INDEX as_records_begun ON as_records (address, client_id, created_at) WHERE kind = 'Interaction';
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      DELETE FROM as_grants g USING accounts a WHERE a.id = g.account_id AND a.logins_epoch <> g.logins_epoch;
      DELETE FROM as_grants g USING api_keys k WHERE k.id = g.key_id AND k.expires_at <= now();
      DELETE FROM as_grants g USING as_grants newer
       WHERE newer.account_id = g.account_id AND newer.client_id = g.client_id AND newer.redirect_key = g.redirect_key
         AND coalesce(newer.connection_id, newer.namespace_id, newer.server_id) = coalesce(g.connection_id, g.namespace_id, g.server_id)
         AND (newer.created_at, newer.id) > (g.created_at, g.id);
      DROP INDEX as_records_interactions, as_records_begun, as_grants_account, as_grants_key, as_grants_right;
      ALTER TABLE as_records
        DROP COLUMN predecessor,
        DROP COLUMN address,
        DROP COLUMN client_id,
        ADD COLUMN family text,
        ADD COLUMN rotation integer NOT NULL DEFAULT 0;
      ALTER TABLE as_grants
        DROP COLUMN address,
        DROP COLUMN logins_epoch,
        DROP COLUMN key_id,
        DROP COLUMN right_id;
      CREATE UNIQUE INDEX as_grants_one
        ON as_grants (account_id, client_id, redirect_key, coalesce(connection_id, namespace_id, server_id));
    `);
  }
}
