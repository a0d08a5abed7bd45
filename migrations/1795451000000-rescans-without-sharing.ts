import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Each server is scanned by itself, so nothing looks for the others at its URL. */
export class RescansWithoutSharing1795451000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX server_rescans_upstream');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('CREATE INDEX server_rescans_upstream ON server_rescans USING hash (upstream_url)');
  }
}
