import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Each page of the list of servers is found in the index alone, however deep it is. */
export class DeepPages1795650000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX servers_popular');
    await runner.query(
      `CREATE INDEX servers_popular ON servers (popularity, created_at, id)
         INCLUDE (visibility, current_type, namespace_id) WHERE NOT unlisted`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX servers_popular');
    await runner.query('CREATE INDEX servers_popular ON servers (popularity, created_at, id) WHERE NOT unlisted');
  }
}
