import type { Worker } from 'bullmq';

/** A job of ours takes milliseconds; one that is cut off is run again by another worker. */
const CLOSE_MS_MAX = 5_000;

/**
 * Makes closing a worker end. BullMQ 6.7 on Postgres sometimes never finishes it once the database was away, and Nest
 * would wait for that with the whole shutdown.
 */
export function boundClose(worker: Worker): void {
  const close = worker.close.bind(worker);
  worker.close = (force) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(resolve, CLOSE_MS_MAX);
      close(force)
        .then(resolve, reject)
        .finally(() => clearTimeout(timer));
    });
}
