import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Columns for the calls of mocks and for URLs with a query, sealed. Stored calls of mocks are deleted: no key is known here
 * to seal them. URLs of authorizations have a hash instead of their query. `npm run secrets -- rotate` seals the URLs that are stored in clear.
 */
export class SealValues1795370000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('DELETE FROM mock_calls');
    await runner.query('ALTER TABLE mock_calls DROP COLUMN arguments, DROP COLUMN answer, ADD sealed text NOT NULL');
    await runner.query('ALTER TABLE connections ADD sealed_url text, ADD mcp_url_hash text');
    await runner.query('CREATE INDEX connections_mcp_url_hash ON connections (namespace_id, mcp_url_hash)');
    await runner.query('ALTER TABLE releases ADD sealed_upstream_url text');
    for (const table of ['upstream_credentials', 'pending_authorizations']) {
      await runner.query(
        `UPDATE ${table} SET upstream_url = split_part(upstream_url, '?', 1) || '?sha256:' || rtrim(translate(
           encode(sha256(convert_to(substr(upstream_url, strpos(upstream_url, '?')), 'UTF8')), 'base64'), '+/', '-_'), '=')
          WHERE upstream_url LIKE '%?_%'`,
      );
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE releases DROP COLUMN sealed_upstream_url');
    await runner.query('ALTER TABLE connections DROP COLUMN sealed_url, DROP COLUMN mcp_url_hash');
    await runner.query('DELETE FROM mock_calls');
    await runner.query('ALTER TABLE mock_calls DROP COLUMN sealed, ADD arguments text, ADD answer text');
  }
}
