import { Injectable, Logger, type BeforeApplicationShutdown, type Provider, type Type } from '@nestjs/common';
import { isDatabaseUnreachable } from '../database/postgres-errors.js';
import { repeat, type Repeat } from './repeat.js';
import { DataSource } from 'typeorm';
import { deletionTime } from '../database/deletion-time.js';

export const HOUR_MS = 3_600_000;

export interface ScheduleOptions {
  immediately?: boolean;
}

export interface ScheduledWork {
  /** Waits for a run in progress first. The promise never rejects. */
  run(): Promise<void>;
}

/** Periodic work of the process, such as sweeps. Timers of single objects use {@link repeat}. */
@Injectable()
export class Schedule implements BeforeApplicationShutdown {
  private readonly timers: Repeat[] = [];
  private readonly running = new Set<Promise<void>>();
  private isStopped = false;

  /**
   * Runs `work` every `ms` milliseconds until the application shuts down. Runs never overlap: a tick during a run is
   * skipped. A failure is logged (at debug while the database is unavailable) and the next tick tries again.
   *
   * @param name names the work in the log, such as `sweep of releases`
   */
  every(name: string, ms: number, work: () => Promise<unknown>, options: ScheduleOptions = {}): ScheduledWork {
    const logger = new Logger('schedule');
    let current: Promise<void> | null = null;
    const start = (): Promise<void> => {
      if (this.isStopped) return Promise.resolve();
      const run = work().then(
        () => undefined,
        (error: unknown) => {
          if (this.isStopped) return;
          logger[isDatabaseUnreachable(error) ? 'debug' : 'error']({ msg: `${name} failed`, err: error });
        },
      );
      current = run.finally(() => {
        this.running.delete(run);
        current = null;
      });
      this.running.add(run);
      return current;
    };
    this.timers.push(
      repeat(ms, () => {
        if (!current) void start();
      }),
    );
    if (options.immediately) void start();
    return { run: () => (current ? current.then(start) : start()) };
  }

  /** Resolves when the runs in progress have finished. */
  async idle(): Promise<void> {
    await Promise.all(this.running);
  }

  /** Stops all timers and waits for the runs in progress. */
  async beforeApplicationShutdown(): Promise<void> {
    this.isStopped = true;
    for (const timer of this.timers) timer.stop();
    await this.idle();
  }
}

/** Returns a provider that runs `work` of a service every `ms` milliseconds, the first time at start. */
export function scheduled<Service>(
  name: string,
  ms: number,
  service: Type<Service>,
  work: (service: Service) => Promise<unknown>,
): Provider {
  const useFactory = (schedule: Schedule, instance: Service) =>
    schedule.every(name, ms, () => work(instance), { immediately: true });
  return { provide: `schedule: ${name}`, inject: [Schedule, service], useFactory };
}

/**
 * Returns a provider of a module for processes that delete by age every `ms` milliseconds, the first time at start. `work` gets
 * the time that decides what is old. It is skipped while the clocks of the process and the database differ.
 */
export function scheduledDeletion<Service>(
  name: string,
  ms: number,
  service: Type<Service>,
  work: (service: Service, now: Date) => Promise<unknown>,
): Provider {
  const useFactory = (schedule: Schedule, instance: Service, database: DataSource) =>
    schedule.every(
      name,
      ms,
      async () => {
        const now = await deletionTime(database);
        if (now) await work(instance, now);
      },
      { immediately: true },
    );
  return { provide: `schedule: ${name}`, inject: [Schedule, service, DataSource], useFactory };
}
