import type { MigrationInterface, QueryRunner } from 'typeorm';

/** A row of `changes` for what happened by itself. In SQL, `new` and `old` are rows of the table. */
interface Fact {
  table: string;
  action: string;
  on: string;
  when: string;
  target: string;
  /** SQL: the server or connection, with its namespace `n`. */
  from: string;
  name: string;
  before: string;
  after: string;
}

const SERVER = 'servers s JOIN namespaces n ON n.id = s.namespace_id WHERE s.id = new.server_id';
const SERVER_NAME = "concat_ws('/', n.name, nullif(s.name, ''))";

const FACTS: Fact[] = [
  {
    table: 'releases',
    action: 'release.finished',
    on: 'UPDATE OF status',
    when: `old.status IS DISTINCT FROM new.status AND new.status NOT IN ('QUEUED', 'WORKING', 'AUTH_REQUIRED')`,
    target: 'new.id',
    from: SERVER,
    name: `${SERVER_NAME} || '@' || new.number`,
    before: 'NULL',
    after: `jsonb_build_object('serverId', s.id, 'number', new.number, 'status', new.status)`,
  },
  {
    table: 'connections',
    action: 'connection.state',
    on: 'UPDATE OF status_state',
    when: 'old.status_state IS DISTINCT FROM new.status_state',
    target: 'new.id',
    from: 'namespaces n WHERE n.id = new.namespace_id',
    name: "concat_ws('/', n.name, new.connection_id)",
    before: `jsonb_build_object('state', old.status_state, 'reason', old.status_reason)`,
    after: `jsonb_build_object('state', new.status_state, 'reason', new.status_reason)`,
  },
  {
    table: 'release_contracts',
    action: 'contract.changed',
    on: 'INSERT',
    when: 'new.change_count > 0',
    target: 'new.server_id',
    from: SERVER,
    name: SERVER_NAME,
    before: 'NULL',
    after: `jsonb_build_object('releaseId', new.release_id, 'summary', new.summary, 'changeCount', new.change_count,
      'foundBy', new.found_by)`,
  },
];

function recorder({ table, action, on, when, target, from, name, before, after }: Fact): string[] {
  const values = [target, name, before, after].join(', ');
  return [
    `CREATE FUNCTION record_fact_of_${table}() RETURNS trigger LANGUAGE plpgsql AS $$
     BEGIN
       INSERT INTO changes (account_id, action, target_id, target, before, after, is_fact)
       SELECT n.account_id, '${action}', ${values}, true FROM ${from};
       RETURN NULL;
     END $$`,
    `CREATE TRIGGER ${table}_record_facts AFTER ${on} ON ${table}
       FOR EACH ROW WHEN (${when}) EXECUTE FUNCTION record_fact_of_${table}()`,
  ];
}

/**
 * Events for modules. A change is recorded with one delivery for each handler of its action, in one transaction, so that no
 * event is lost, and a change that was rolled back has none.
 */
export class Events1795780000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `CREATE TABLE event_handlers (
         name text CONSTRAINT event_handlers_pk PRIMARY KEY,
         actions text[] NOT NULL,
         seen_at timestamptz(3) NOT NULL DEFAULT now()
       )`,
    );
    await runner.query(
      `CREATE TABLE event_deliveries (
         change_id bigint NOT NULL
           CONSTRAINT event_deliveries_change_fk REFERENCES changes (id) ON DELETE CASCADE,
         handler text NOT NULL
           CONSTRAINT event_deliveries_handler_fk REFERENCES event_handlers (name) ON DELETE CASCADE,
         target_id uuid NOT NULL,
         attempts integer NOT NULL DEFAULT 0,
         due_at timestamptz(3) NOT NULL DEFAULT now(),
         failed_at timestamptz(3),
         error text,
         CONSTRAINT event_deliveries_pk PRIMARY KEY (change_id, handler)
       )`,
    );
    await runner.query(
      `CREATE INDEX event_deliveries_order ON event_deliveries (handler, target_id, change_id) WHERE failed_at IS NULL`,
    );
    await runner.query(
      `CREATE FUNCTION deliver_change() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN
         INSERT INTO event_deliveries (change_id, handler, target_id)
         SELECT new.id, name, new.target_id FROM event_handlers WHERE new.action = ANY (actions);
         RETURN NULL;
       END $$`,
    );
    await runner.query(
      `CREATE TRIGGER changes_deliver AFTER INSERT ON changes FOR EACH ROW EXECUTE FUNCTION deliver_change()`,
    );
    for (const statement of FACTS.flatMap(recorder)) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const { table } of FACTS) await runner.query(`DROP FUNCTION record_fact_of_${table}() CASCADE`);
    await runner.query('DROP FUNCTION deliver_change() CASCADE');
    await runner.query('DROP TABLE event_deliveries, event_handlers');
  }
}
