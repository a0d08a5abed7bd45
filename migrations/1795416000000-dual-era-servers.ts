import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Endpoints that speak 2026-07-28 and have sessions of older revisions too are of kind `both`. */
export class DualEraServers1795416000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE upstream_eras DROP CONSTRAINT upstream_eras_kind');
    await runner.query(
      `ALTER TABLE upstream_eras ADD CONSTRAINT upstream_eras_kind CHECK ("kind" IN ('modern', 'both', 'streamable', 'sse'))`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`UPDATE upstream_eras SET kind = 'modern' WHERE kind = 'both'`);
    await runner.query('ALTER TABLE upstream_eras DROP CONSTRAINT upstream_eras_kind');
    await runner.query(
      `ALTER TABLE upstream_eras ADD CONSTRAINT upstream_eras_kind CHECK ("kind" IN ('modern', 'streamable', 'sse'))`,
    );
  }
}
