import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Servers, connections and namespaces are found in one view: by name (`key`), slug or id. */
export class Targets1795750000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`CREATE VIEW targets AS
      SELECT 'namespace'::text AS kind, n.id, n.id AS namespace_id, n.name AS namespace, ''::text AS name, ''::text AS key,
             NULL::text AS slug, n.name::text AS title, n.account_id AS owner_id, NULL::text AS visibility,
             n.suspended ->> 'reason' AS suspended
        FROM namespaces n
      UNION ALL
      SELECT 'server', s.id, n.id, n.name, s.name, lower(s.name), lower(s.slug),
             coalesce(nullif(s.display_name, ''), nullif(s.name, ''), n.name), n.account_id, s.visibility,
             coalesce(s.suspended, n.suspended) ->> 'reason'
        FROM servers s JOIN namespaces n ON n.id = s.namespace_id
      UNION ALL
      SELECT 'connection', c.id, n.id, n.name, c.connection_id, c.connection_id, NULL, c.name, n.account_id, NULL,
             coalesce(c.suspended, n.suspended) ->> 'reason'
        FROM connections c JOIN namespaces n ON n.id = c.namespace_id`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP VIEW targets');
  }
}
