import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Grants of whole namespaces, for everybody with an account, of some tools, and until a time. */
export class FinerGrants1795660000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `ALTER TABLE grants ADD namespace_id uuid, ADD tools text[], ADD expires_at timestamptz,
         ALTER subject_id DROP NOT NULL, DROP CONSTRAINT grants_target,
         ADD CONSTRAINT grants_target CHECK (num_nonnulls(server_id, connection_id, namespace_id) = 1),
         ADD CONSTRAINT grants_tools CHECK (tools IS NULL OR level = 'call'),
         ADD CONSTRAINT grants_namespace_fk FOREIGN KEY (namespace_id) REFERENCES namespaces(id) ON DELETE CASCADE`,
    );
    await runner.query('CREATE UNIQUE INDEX grants_namespace ON grants (namespace_id, subject_id)');
  }

  async down(runner: QueryRunner): Promise<void> {
    // Without these columns they would grant more, or longer.
    await runner.query(
      'DELETE FROM grants WHERE coalesce(namespace_id::text, tools::text, expires_at::text) IS NOT NULL OR subject_id IS NULL',
    );
    await runner.query(
      `ALTER TABLE grants DROP CONSTRAINT grants_target, DROP CONSTRAINT grants_tools,
         DROP COLUMN namespace_id, DROP COLUMN tools, DROP COLUMN expires_at, ALTER subject_id SET NOT NULL,
         ADD CONSTRAINT grants_target CHECK (num_nonnulls(server_id, connection_id) = 1)`,
    );
  }
}
