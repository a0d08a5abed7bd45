import { InjectQueue } from '@nestjs/bullmq';
import { type BeforeApplicationShutdown, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { getNextMillis, type Job, type Queue } from 'bullmq';
import { type DecoratedMethod, DecoratedMethods, IntervalSchedule } from '../../extension.js';
import { jobOptions, JobWorker, withTimeout } from '../../extension.js';
import { ScheduleMarker } from './schedule.decorator.js';

export const SCHEDULES_QUEUE = 'schedules';

/** Runs mostly wait for the database or for other services. */
const CONCURRENCY = 8;
const RESPONSE_MS_MAX = 3_000;
const REGISTER_EVERY_MS = 5_000;

/** Calls the methods with `@Schedule` by job schedulers of BullMQ. Opens no connection without such a method. */
@Injectable()
export class SchedulesService implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private methods = new Map<string, DecoratedMethod<string>>();
  private readonly running = new Set<Promise<unknown>>();
  private worker?: JobWorker;
  private registration: Promise<void> | null = null;

  constructor(
    @InjectQueue(SCHEDULES_QUEUE) private readonly queue: Queue,
    private readonly decoratedMethods: DecoratedMethods,
    private readonly intervalSchedule: IntervalSchedule,
  ) {}

  /** @throws Error for an invalid cron expression */
  onApplicationBootstrap(): void {
    this.methods = new Map(this.decoratedMethods.find(ScheduleMarker).map((method) => [method.name, method]));
    for (const { name, options: pattern } of this.methods.values()) {
      try {
        getNextMillis(Date.now(), { pattern, tz: 'UTC' });
      } catch (error) {
        throw new Error(`@Schedule of ${name}: ${(error as Error).message}`, { cause: error });
      }
    }
    // If the store does not respond, the attempt continues in the background, and the process can stop.
    const register = () => withTimeout(RESPONSE_MS_MAX, this.register(), undefined);
    this.intervalSchedule.every('registration of schedules', REGISTER_EVERY_MS, register, { immediately: true });
    if (this.methods.size === 0) return;
    const run = ({ name, opts }: Job) => this.run(name, new Date(opts.prevMillis ?? Date.now()));
    this.worker = new JobWorker(SCHEDULES_QUEUE, run, { ...this.queue.opts, concurrency: CONCURRENCY });
  }

  /** Waits for the current runs. Other processes perform the runs that become due meanwhile. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.worker?.pause(true);
    await Promise.allSettled(this.running);
    await this.worker?.close();
  }

  private register(): Promise<void> {
    return (this.registration ??= this.store().catch((error: unknown) => {
      this.registration = null;
      throw error;
    }));
  }

  /** Writes changed schedules only, so that a run that is already due is not lost. */
  private async store(): Promise<void> {
    const stored = new Map((await this.queue.getJobSchedulers(0, -1)).map(({ key, pattern }) => [key, pattern]));
    for (const name of stored.keys()) if (!this.methods.has(name)) await this.queue.removeJobScheduler(name);
    for (const { name, options: pattern } of this.methods.values()) {
      if (stored.get(name) === pattern) continue;
      const template = { name, opts: { ...jobOptions, attempts: 1 } };
      await this.queue.upsertJobScheduler(name, { pattern, tz: 'UTC' }, template);
    }
  }

  private async run(name: string, dueAt: Date): Promise<void> {
    const method = this.methods.get(name);
    if (!method)
      throw new Error(`This process has no method ${name}: its modules differ from those of another process`);
    const run = Promise.resolve(method.call(dueAt)).finally(() => this.running.delete(run));
    this.running.add(run);
    await run;
  }
}
