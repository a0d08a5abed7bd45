import { timingSafeEqual } from 'node:crypto';
import { Inject, Injectable, Logger } from '@nestjs/common';
import { collectDefaultMetrics, Counter, Histogram, Registry, type Metric } from 'prom-client';
import { Env } from '../../config/env.js';
import { errorOf, NotFoundError } from '../errors/domain-error.js';
import { hashSecret } from '../http/secrets.js';

/** Names and values from fixed lists only: a label that tenants choose would grow without end, and show what they do. */
type Labels = Readonly<Record<string, string>>;

/** One value of a metric. */
export interface Sample {
  labels: Labels;
  value: number;
}

/** Reads a metric: one value, or one for each combination of its labels. */
type Reading = number | Sample[];

/** The values of each label. */
type LabelValues<Label extends string> = Readonly<Record<Label, readonly string[]>>;

type Type = 'counter' | 'gauge' | 'histogram';

/**
 * Upper ends of the buckets of durations: from a call that is refused at once to one that takes the longest time allowed.
 */
const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** The metrics were asked for without their token. */
class MetricsTokenError extends errorOf('unauthenticated', 'unauthorized') {
  constructor() {
    super('Send the METRICS_TOKEN of this service as "Authorization: Bearer <token>"');
  }
}

/** Registry of this process's metrics. */
@Injectable()
export class Metrics {
  private readonly logger = new Logger('metrics');
  private readonly registry = new Registry();
  private reading: Promise<string> | null = null;

  constructor(@Inject(Env) private readonly env: Pick<Env, 'metricsToken'>) {
    if (env.metricsToken !== null) ofProcess();
  }

  /** Registers a counter that is read at each scrape: a number that only grows. @param name `slipway_…_total` */
  counter(name: string, help: string, read: () => Reading): void {
    this.add('counter', name, help, read);
  }

  /** Registers a gauge that is read at each scrape. @param name `slipway_…`, with its unit at the end if it has one */
  gauge(name: string, help: string, read: () => Reading | Promise<Reading>): void {
    this.add('gauge', name, help, read);
  }

  /** A counter that its owner increments: 0.3 µs. Shows every combination of the labels from the start. */
  labeledCounter<Label extends string>(name: string, help: string, values: LabelValues<Label>): Counter<Label> {
    requireName('counter', name);
    const counter = new Counter({ name, help, labelNames: namesOf(values), registers: [this.registry] });
    for (const labels of combinations(values)) counter.inc(labels, 0);
    return counter;
  }

  /** A histogram of durations in seconds, with the same labels as {@link labeledCounter}. @param name `slipway_…_seconds` */
  durations<Label extends string = never>(
    name: string,
    help: string,
    values = {} as LabelValues<Label>,
  ): Histogram<Label> {
    requireName('histogram', name);
    const registers = [this.registry];
    const histogram = new Histogram({ name, help, labelNames: namesOf(values), buckets: BUCKETS_SECONDS, registers });
    for (const labels of combinations(values)) histogram.zero(labels);
    return histogram;
  }

  /**
   * The metrics, for a reader with the token.
   *
   * @param authorization the header of that name
   * @throws NotFoundError without `METRICS_TOKEN`; MetricsTokenError
   */
  async page(authorization: string | undefined): Promise<string> {
    const { metricsToken } = this.env;
    if (metricsToken !== null && metricsToken !== 'open') requireToken(metricsToken, authorization);
    const text = await this.text();
    if (text === null) throw new NotFoundError('Metrics are off: the operator turns them on with METRICS_TOKEN');
    return text;
  }

  /** All metrics in Prometheus' text format 0.0.4; concurrent callers share one reading. Null without a METRICS_TOKEN. */
  async text(): Promise<string | null> {
    if (this.env.metricsToken === null) return null;
    this.reading ??= Promise.all([this.registry.metrics(), ofProcess().metrics()])
      .then((parts) => parts.join('\n'))
      .finally(() => (this.reading = null));
    return this.reading;
  }

  private add(type: Type, name: string, help: string, read: () => Reading | Promise<Reading>): void {
    requireName(type, name);
    const get = async () => ({ name, help, type, values: await this.samples(name, read) });
    // The classes of prom-client set single values; its registry accepts any object with these members.
    this.registry.registerMetric({ name, help, type, get } as unknown as Metric);
  }

  /** A metric that cannot be read is left out, and the others are shown. */
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

/** Compares hashes, which are of one length, so that the time of the comparison reveals nothing. */
function requireToken(token: string, authorization = ''): void {
  const given = /^Bearer +(\S+) *$/i.exec(authorization)?.[1] ?? '';
  if (!timingSafeEqual(hashSecret(given), hashSecret(token))) throw new MetricsTokenError();
}

function requireName(type: Type, name: string): void {
  if (!/^slipway(_[a-z0-9]+)+$/.test(name) || name.endsWith('_total') !== (type === 'counter')) {
    throw new Error(`${name} is not a valid name of a ${type}`);
  }
}

function namesOf<Label extends string>(values: LabelValues<Label>): Label[] {
  return Object.keys(values) as Label[];
}

function combinations<Label extends string>(values: LabelValues<Label>): Record<Label, string>[] {
  return namesOf(values).reduce(
    (all, name) => all.flatMap((labels) => values[name].map((value) => ({ ...labels, [name]: value }))),
    [{} as Record<Label, string>],
  );
}

/** Metrics of prom-client that list every socket at each scrape; the gauges of this service count sockets by use. */
const omitted = ['nodejs_active_handles', 'nodejs_active_requests', 'nodejs_active_resources'];

/** How finely delays of the event loop are measured; each time costs a wake-up. */
const LOOP_PRECISION_MS = 20;

let processRegistry: Registry | null = null;

/** CPU, memory, garbage and event loop: of the process, so there is one, whatever runs in it. It holds no process open. */
function ofProcess(): Registry {
  if (processRegistry) return processRegistry;
  const registry = (processRegistry = new Registry());
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LOOP_PRECISION_MS });
  for (const name of omitted) for (const each of [name, `${name}_total`]) registry.removeSingleMetric(each);
  return registry;
}
