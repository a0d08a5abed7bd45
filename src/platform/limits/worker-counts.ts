/**
 * Request counts that the processes of `WORKERS` add up: each worker sends what it has counted in one message a second,
 * and the supervisor replies with the totals of all workers. A worker whose message is lost continues with its own
 * counts.
 */
import cluster from 'node:cluster';

/** Counts of keys within one window of `RateCounter`. */
export interface WindowCounts {
  window: number;
  counts: [key: string, count: number][];
}

interface Message {
  added?: WindowCounts;
  totals?: WindowCounts;
}

/** Adds up the counts of all workers, in the supervisor. Only those of the latest window are kept. */
export function addUpRequests(): void {
  let latest = -1;
  let totals = new Map<string, number>();
  cluster.on('message', (worker, { added }: Message) => {
    if (!added || added.window < latest) return;
    if (added.window > latest) {
      latest = added.window;
      totals = new Map();
    }
    for (const [key, count] of added.counts) totals.set(key, (totals.get(key) ?? 0) + count);
    const counts = added.counts.map(([key]): [string, number] => [key, totals.get(key) ?? 0]);
    worker.send({ totals: { window: latest, counts } } satisfies Message);
  });
}

/** Sends the counts of a worker since its last message. */
export function sendCounts(added: WindowCounts): void {
  process.send?.({ added } satisfies Message);
}

/** Calls the listener in a worker with the totals of all workers, for the keys that the worker has sent. */
export function onTotals(listener: (totals: WindowCounts) => void): void {
  process.on('message', ({ totals }: Message) => {
    if (totals) listener(totals);
  });
}
