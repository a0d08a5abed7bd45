import cluster from 'node:cluster';
import { timingSafeEqual } from 'node:crypto';
import { Inject, Injectable, Logger } from '@nestjs/common';
import { collectDefaultMetrics, Registry, type Metric } from 'prom-client';
import { Env } from '../../config/env.js';
import { errorOf, NotFoundError } from '../errors/domain-error.js';
import { hashSecret } from '../http/secrets.js';
import { metricsOfWorkers, shareMetrics } from './worker-metrics.js';

/**
 * Names and values come only from fixed lists: labels that tenants choose would grow without limit, and reveal their
 * activity.
 */
type Labels = Readonly<Record<string, string>>;

export interface Sample {
  labels: Labels;
  value: number;
  /** For the sums, counts and buckets of a histogram: its name with `_sum`, `_count` or `_bucket`. */
  metricName?: string;
}

type Reading = number | Sample[];

type LabelValues<Label extends string> = Readonly<Record<Label, readonly string[]>>;

type Type = 'counter' | 'gauge' | 'histogram';

/** Values of the whole service are not added up. */
type Aggregator = 'sum' | 'max' | 'min' | 'first';

/** Upper ends of the buckets of durations: from a call rejected immediately to the longest one allowed. */
const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/**
 * Labels are found by their values. The classes of prom-client sort and hash the labels at each update, which takes
 * three to four times as long.
 */
class LabeledCells<Label extends string, Cell> {
  private readonly names: Label[];
  private readonly cells = new Map<string, { labels: Record<Label, string>; cell: Cell }>();

  constructor(
    values: LabelValues<Label>,
    private readonly empty: () => Cell,
  ) {
    this.names = Object.keys(values) as Label[];
    const all = this.names.reduce(
      (some, name) => some.flatMap((labels) => values[name].map((value) => ({ ...labels, [name]: value }))),
      [{} as Record<Label, string>],
    );
    for (const labels of all) this.cellOf(labels);
  }

  cellOf(labels: Record<Label, string>): Cell {
    let key = '';
    for (const name of this.names) key = key === '' ? labels[name] : `${key}\n${labels[name]}`;
    let entry = this.cells.get(key);
    if (!entry) this.cells.set(key, (entry = { labels, cell: this.empty() }));
    return entry.cell;
  }

  read(samplesOf: (cell: Cell, labels: Record<Label, string>) => Sample[]): Sample[] {
    return [...this.cells.values()].flatMap(({ cell, labels }) => samplesOf(cell, labels));
  }
}

export class LabeledCounter<Label extends string> {
  private readonly counts: LabeledCells<Label, { count: number }>;

  constructor(values: LabelValues<Label>) {
    this.counts = new LabeledCells(values, () => ({ count: 0 }));
  }

  inc(labels: Record<Label, string>, by = 1): void {
    this.counts.cellOf(labels).count += by;
  }

  samples(): Sample[] {
    return this.counts.read(({ count }, labels) => [{ labels, value: count }]);
  }
}

export class Durations<Label extends string> {
  private readonly series: LabeledCells<Label, { sum: number; counts: number[] }>;

  constructor(
    private readonly name: string,
    values: LabelValues<Label>,
  ) {
    this.series = new LabeledCells(values, () => ({
      sum: 0,
      counts: Array<number>(BUCKETS_SECONDS.length + 1).fill(0),
    }));
  }

  observe(seconds: number, labels = {} as Record<Label, string>): void {
    const series = this.series.cellOf(labels);
    let bucket = 0;
    while (seconds > BUCKETS_SECONDS[bucket]) bucket += 1;
    series.counts[bucket] += 1;
    series.sum += seconds;
  }

  samples(): Sample[] {
    return this.series.read(({ sum, counts }, labels) => {
      let count = 0;
      const buckets = [...BUCKETS_SECONDS, '+Inf'].map((end, bucket) => {
        count += counts[bucket];
        return { labels: { le: String(end), ...labels }, value: count, metricName: `${this.name}_bucket` };
      });
      return [
        ...buckets,
        { labels, value: sum, metricName: `${this.name}_sum` },
        { labels, value: count, metricName: `${this.name}_count` },
      ];
    });
  }
}

class MetricsTokenError extends errorOf('unauthenticated', 'unauthorized') {}

/** Registry of this process's metrics. */
@Injectable()
export class Metrics {
  private readonly logger = new Logger('metrics');
  private readonly registry = new Registry();
  private reading: Promise<string> | null = null;

  constructor(@Inject(Env) private readonly env: Pick<Env, 'metricsToken'>) {
    if (env.metricsToken === null) return;
    ofProcess();
    shareMetrics(async () =>
      (await Promise.all([this.registry.getMetricsAsJSON(), ofProcess().getMetricsAsJSON()])).flat(),
    );
  }

  /** Registers a counter that is read at each scrape: a number that only grows. @param name `slipway_…_total` */
  counter(name: string, help: string, read: () => Reading): void {
    this.add('counter', name, help, read);
  }

  /** Registers a gauge that is read at each scrape. @param name `slipway_…`, with its unit at the end if it has one */
  gauge(name: string, help: string, read: () => Reading | Promise<Reading>, aggregator: Aggregator = 'sum'): void {
    this.add('gauge', name, help, read, aggregator);
  }

  /** Creates a counter that shows every combination of its labels from the start. */
  labeledCounter<Label extends string>(name: string, help: string, values: LabelValues<Label>): LabeledCounter<Label> {
    const counter = new LabeledCounter(values);
    this.counter(name, help, () => counter.samples());
    return counter;
  }

  /** Creates a histogram of durations in seconds, with the same labels as {@link labeledCounter}. @param name `slipway_…_seconds` */
  durations<Label extends string = never>(
    name: string,
    help: string,
    values = {} as LabelValues<Label>,
  ): Durations<Label> {
    const durations = new Durations(name, values);
    this.add('histogram', name, help, () => durations.samples());
    return durations;
  }

  /**
   * Returns the metrics, for a reader with the token.
   *
   * @param authorization the header of that name
   * @throws NotFoundError without `METRICS_TOKEN`; 401 for another token
   */
  async page(authorization: string | undefined): Promise<string> {
    const { metricsToken } = this.env;
    if (metricsToken !== null && metricsToken !== 'open') {
      const token = /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1] ?? '';
      // Hashes have equal lengths, so that the time of the comparison reveals nothing.
      if (!timingSafeEqual(hashSecret(token), hashSecret(metricsToken))) {
        throw new MetricsTokenError('Send the METRICS_TOKEN of this service as "Authorization: Bearer <token>"');
      }
    }
    const text = await this.text();
    if (text === null) throw new NotFoundError('Metrics are off: the operator turns them on with METRICS_TOKEN');
    return text;
  }

  /**
   * Returns all metrics in Prometheus' text format 0.0.4, those of all workers together; concurrent callers share one reading. Null
   * without a METRICS_TOKEN.
   */
  async text(): Promise<string | null> {
    if (this.env.metricsToken === null) return null;
    const ofThis = () =>
      Promise.all([this.registry.metrics(), ofProcess().metrics()]).then((parts) => parts.join('\n'));
    this.reading ??= (cluster.isWorker ? metricsOfWorkers().then((text) => text ?? ofThis()) : ofThis()).finally(
      () => (this.reading = null),
    );
    return this.reading;
  }

  private add(
    type: Type,
    name: string,
    help: string,
    read: () => Reading | Promise<Reading>,
    aggregator: Aggregator = 'sum',
  ): void {
    if (!/^slipway(_[a-z0-9]+)+$/.test(name) || name.endsWith('_total') !== (type === 'counter')) {
      throw new Error(`${name} is not a valid name of a ${type}`);
    }
    const get = async () => ({ name, help, type, aggregator, values: await this.samples(name, read) });
    // The classes of prom-client set single values; its registry accepts any object with these members.
    this.registry.registerMetric({ name, help, type, aggregator, get } as unknown as Metric);
  }

  /** Leaves out a metric that cannot be read, and returns the others. */
  private async samples(name: string, read: () => Reading | Promise<Reading>): Promise<Sample[]> {
    try {
      const reading = await read();
      return typeof reading === 'number' ? [{ labels: {}, value: reading }] : reading;
    } catch (error) {
      this.logger.warn({ msg: `${name} could not be read`, err: error });
      return [];
    }
  }
}

const omitted = ['nodejs_active_handles', 'nodejs_active_requests', 'nodejs_active_resources'];

/** Precision of measured event loop delays; each measurement costs a wake-up. */
const LOOP_PRECISION_MS = 20;

let processRegistry: Registry | null = null;

/** Returns the metrics of the process, one object that does not keep the process running. */
function ofProcess(): Registry {
  if (processRegistry) return processRegistry;
  const registry = (processRegistry = new Registry());
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LOOP_PRECISION_MS });
  for (const name of omitted) for (const each of [name, `${name}_total`]) registry.removeSingleMetric(each);
  return registry;
}
