import { Inject, Injectable, Logger } from '@nestjs/common';
import { collectDefaultMetrics, Registry, type Metric } from 'prom-client';
import { Env } from '../../config/env.js';
import type { Durations, Labels, Sample } from './figures.js';

/** Reads a metric: one value, or one for each combination of its labels. */
export type Reading = number | Sample[];

type Type = 'counter' | 'gauge' | 'histogram';

/**
 * What this process shows of itself. Each room registers its figures once and keeps them where it has them; they are read
 * when somebody looks, so that nothing but an addition stands on the way of a call. This is the only place that knows the
 * library.
 */
@Injectable()
export class Metrics {
  private readonly logger = new Logger('metrics');
  private readonly registry = new Registry();
  private readonly isOn: boolean;
  private reading: Promise<string> | null = null;

  constructor(@Inject(Env) { metricsToken }: Pick<Env, 'metricsToken'>) {
    this.isOn = metricsToken !== null;
    if (this.isOn) ofProcess();
  }

  /** Registers a counter: a number that only grows while the process runs. @param name `slipway_…_total` */
  counter(name: string, help: string, read: () => Reading): void {
    this.add('counter', name, help, read);
  }

  /** Registers a gauge: the value at this moment. @param name `slipway_…`, with its unit at the end if it has one */
  gauge(name: string, help: string, read: () => Reading | Promise<Reading>): void {
    this.add('gauge', name, help, read);
  }

  /** How long something took. @param name `slipway_…_seconds` */
  durations(name: string, help: string, of: readonly { labels?: Labels; durations: Durations }[]): void {
    this.add('histogram', name, help, () => of.flatMap(({ labels, durations }) => durations.samples(name, labels)));
  }

  /** Everything in Prometheus' text format 0.0.4. Who asks while it is being read gets the same. Null while it is off. */
  async text(): Promise<string | null> {
    if (!this.isOn) return null;
    this.reading ??= Promise.all([this.registry.metrics(), ofProcess().metrics()])
      .then((parts) => parts.join('\n'))
      .finally(() => (this.reading = null));
    return this.reading;
  }

  private add(type: Type, name: string, help: string, read: () => Reading | Promise<Reading>): void {
    if (!/^slipway(_[a-z0-9]+)+$/.test(name) || name.endsWith('_total') !== (type === 'counter')) {
      throw new Error(`${name} is no name of a ${type}`);
    }
    const get = async () => ({ name, help, type, values: await this.samples(name, read) });
    // The library's own classes look every label up at each count; its registry takes whatever has these members.
    this.registry.registerMetric({ name, help, type, get } as unknown as Metric);
  }

  /** A figure that cannot be read is left out: the others are wanted all the more then. */
  private async samples(name: string, read: () => Reading | Promise<Reading>) {
    try {
      const reading = await read();
      const samples = typeof reading === 'number' ? [{ labels: {}, value: reading }] : reading;
      return samples.map((sample) => ({ labels: sample.labels, value: sample.value, metricName: sample.name ?? name }));
    } catch (error) {
      this.logger.warn({ msg: `${name} could not be read`, err: error });
      return [];
    }
  }
}

/** The library makes a list of every socket for these, and our own gauges tell what the sockets are for. */
const left = ['nodejs_active_handles', 'nodejs_active_requests', 'nodejs_active_resources'];

/** How finely delays of the event loop are measured; each time costs a wake-up. */
const LOOP_PRECISION_MS = 20;

let processRegistry: Registry | null = null;

/** CPU, memory, garbage and event loop: of the process, so there is one, whatever runs in it. It holds no process open. */
function ofProcess(): Registry {
  if (processRegistry) return processRegistry;
  const registry = (processRegistry = new Registry());
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LOOP_PRECISION_MS });
  for (const name of left) for (const each of [name, `${name}_total`]) registry.removeSingleMetric(each);
  return registry;
}
