import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Names and slugs of servers are unique in lower case. Rows that differ in case only are named, and nothing is changed. */
export class ServerNamesInAnyCase1795400000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`DO $$ DECLARE twins text; BEGIN
      SELECT string_agg(twin, '; ' ORDER BY twin) INTO twins FROM (
        SELECT string_agg(n.name || '/' || s.name, ' and ' ORDER BY s.name) AS twin
          FROM servers s JOIN namespaces n ON n.id = s.namespace_id GROUP BY n.name, lower(s.name) HAVING count(*) > 1
        UNION ALL
        SELECT string_agg('/run/' || slug, ' and ' ORDER BY slug) FROM servers GROUP BY lower(slug) HAVING count(*) > 1
      ) found;
      IF twins IS NOT NULL THEN
        RAISE EXCEPTION 'Servers differ in upper and lower case only, which this version does not allow: %. Rename or delete one of each with the version that ran before (transfer with targetSlug; domains for addresses), then start again.', twins;
      END IF;
    END $$`);
    await runner.query('DROP INDEX servers_qualified_name, servers_slug');
    await runner.query('CREATE UNIQUE INDEX servers_qualified_name ON servers (namespace_id, lower(name))');
    await runner.query('CREATE UNIQUE INDEX servers_slug ON servers (lower(slug))');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX servers_qualified_name, servers_slug');
    await runner.query('CREATE UNIQUE INDEX servers_qualified_name ON servers (namespace_id, name)');
    await runner.query('CREATE UNIQUE INDEX servers_slug ON servers (slug)');
  }
}
