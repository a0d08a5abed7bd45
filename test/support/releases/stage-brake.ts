import pg from 'pg';
import type { Stage } from '../../../src/modules/releases/release-state.js';
import { until } from '../until.js';

/** Holds every release at the end of one stage, from outside, by locks of the database. */
export interface StageBrake {
  /** Resolves when so many sessions stand still. */
  holds(count?: number): Promise<void>;
  /** Lets them go on. */
  let(): Promise<void>;
}

/** The column that only the commit of a stage writes to. */
const columnOf = { scan: 'scan_passed', metadata: 'description', publish: 'current_release_id' } as const;

const KEY = 4_711;

/**
 * Pulls the brake: `deploy` waits for the files of its release (which it must have), the others in the transaction that
 * concludes them. For `metadata` the server needs an empty description, and the upstream one to fill it with.
 */
export async function brakeAt(databaseUrl: string, stage: Stage): Promise<StageBrake> {
  const holder = new pg.Client(databaseUrl);
  await holder.connect();
  if (stage === 'deploy') {
    await holder.query('BEGIN');
    await holder.query('LOCK TABLE release_artifacts IN ACCESS EXCLUSIVE MODE');
  } else {
    await holder.query(`SELECT pg_advisory_lock(${KEY})`);
    await holder.query(
      `CREATE OR REPLACE FUNCTION brake() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN PERFORM pg_advisory_xact_lock_shared(${KEY}); RETURN NEW; END $$`,
    );
    await holder.query(
      `CREATE TRIGGER brake BEFORE UPDATE OF ${columnOf[stage]} ON servers FOR EACH ROW EXECUTE FUNCTION brake()`,
    );
  }
  const blocked = `SELECT count(*)::int AS count FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock' AND $1 = ANY (pg_blocking_pids(pid))`;
  const { rows } = await holder.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  return {
    holds: async (count = 1) => {
      const areHeld = async () => {
        // Within a transaction, what sessions do is remembered from the first look.
        await holder.query('SELECT pg_stat_clear_snapshot()');
        return (await holder.query<{ count: number }>(blocked, [rows[0].pid])).rows[0].count >= count;
      };
      await until(areHeld, `${count} sessions stand still`);
    },
    let: async () => {
      await holder.query(stage === 'deploy' ? 'COMMIT' : `SELECT pg_advisory_unlock(${KEY})`);
      if (stage !== 'deploy') await holder.query('DROP TRIGGER brake ON servers');
      await holder.end();
    },
  };
}
