/**
 * `/metrics` of several workers (`WORKERS`): the scraped worker requests them from the supervisor, which reads all of
 * them and adds them up. Counters, histograms and most gauges are sums; gauges of the whole service name another method
 * (`Metrics.gauge`).
 *
 * A worker that does not respond in 2 s is left out.
 */
import cluster, { type Worker } from 'node:cluster';
import { AggregatorRegistry } from 'prom-client';
import { withTimeout } from '../limits/with-timeout.js';

const ANSWER_MS_MAX = 2_000;

/** Longer than the supervisor waits for the others. */
const TEXT_MS_MAX = 2 * ANSWER_MS_MAX;

type Message =
  | { metrics: 'ask' | 'read' }
  | { metrics: 'values'; values: object[] }
  | { metrics: 'text'; text: string }
  | { metrics?: undefined };

/** Runs in the supervisor. @param workers those that serve */
export function addUpMetrics(workers: () => Worker[]): void {
  cluster.on('message', (asker, message: Message) => {
    if (message.metrics !== 'ask') return;
    void Promise.all(workers().map((worker) => withTimeout(ANSWER_MS_MAX, valuesOf(worker), []))).then(
      async (values) => {
        const text = await AggregatorRegistry.aggregate(values).metrics();
        asker.send({ metrics: 'text', text } satisfies Message);
      },
    );
  });
}

function valuesOf(worker: Worker): Promise<object[]> {
  return new Promise((resolve) => {
    const listen = (message: Message) => {
      if (message.metrics !== 'values') return;
      worker.off('message', listen);
      resolve(message.values);
    };
    worker.on('message', listen);
    worker.send({ metrics: 'read' } satisfies Message);
  });
}

/** Runs in a worker; null when the supervisor does not respond. */
export function metricsOfWorkers(): Promise<string | null> {
  const answer = new Promise<string>((resolve) => {
    const listen = (message: Message) => {
      if (message.metrics !== 'text') return;
      process.off('message', listen);
      resolve(message.text);
    };
    process.on('message', listen);
    process.send?.({ metrics: 'ask' } satisfies Message);
  });
  return withTimeout(TEXT_MS_MAX, answer, null);
}

/** Runs in a worker, on request of the supervisor. Does nothing in other processes. */
export function shareMetrics(read: () => Promise<object[]>): void {
  if (!cluster.isWorker) return;
  process.on('message', (message: Message) => {
    if (message.metrics !== 'read') return;
    void read().then((values) => process.send?.({ metrics: 'values', values } satisfies Message));
  });
}
