import type { MigrationInterface, QueryRunner } from 'typeorm';

/** A key of an organization records who created it. */
export class KeyMakers1795621000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE api_keys ADD maker_id uuid`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE api_keys DROP COLUMN maker_id`);
  }
}
