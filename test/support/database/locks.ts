import type { TestApp } from '../app.js';

/**
 * Starts requests one after the other while their namespace's row is locked, each as soon as the one before waits for
 * the lock, then lets them go: they get at the row in exactly this order.
 */
export async function whileNamespaceIsLocked<T>(
  app: TestApp,
  name: string,
  starts: (() => Promise<T>)[],
): Promise<T[]> {
  const holder = app.database.createQueryRunner();
  await holder.startTransaction();
  const started: Promise<T>[] = [];
  try {
    await holder.query('SELECT 1 FROM namespaces WHERE name = $1 FOR UPDATE', [name]);
    for (const start of starts) {
      started.push(start());
      await untilWaiting(app, started.length);
    }
  } finally {
    await holder.commitTransaction();
    await holder.release();
  }
  return Promise.all(started);
}

/** Resolves when so many sessions of the app's database wait for a lock; rejects when they do not within 10 s. */
async function untilWaiting(app: TestApp, count: number): Promise<void> {
  const deadline = Date.now() + 10_000;
  for (;;) {
    const [row] = await app.database.query(
      `SELECT count(*)::int AS waiting FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    if (row.waiting >= count) return;
    if (Date.now() > deadline) throw new Error(`${row.waiting} of ${count} requests wait for the lock`);
  }
}
