import { stat, statfs } from 'node:fs/promises';
import path from 'node:path';
import { Injectable, Logger } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import {
  Accounts,
  asSystem,
  type CheckLine,
  Env,
  examineService,
  LAST_BACKUP,
  loadExternalModules,
  QueueMetrics,
  withTimeout,
} from '../../extension.js';
import { ServicePageRepository } from './service-page.repository.js';

const FRESH_MS = 15_000;

/** Time for which a page waits for all of its sections. */
const WAIT_MS_MAX = 200;

/** A value, the error that prevented reading it, or null while it is being read. */
export type Section<T> = { value: T } | { fault: string } | null;

interface Reading {
  section: Section<unknown>;
  readAt: number;
  reading: Promise<void> | null;
}

type Values<S> = { [Name in keyof S]: S[Name] extends () => Promise<infer T> ? Section<T> : never };

export type ServiceView = Values<ReturnType<ServiceSections['loaders']>>;

/**
 * A section that fails or is slow does not delay the others. Concurrent pages share one read, which continues if a page
 * no longer waits for it.
 */
@Injectable()
export class ServiceSections {
  private readonly logger = new Logger('service');
  private readonly readings = new Map<string, Reading>();

  constructor(
    private readonly env: Env,
    private readonly accounts: Accounts,
    private readonly moduleRef: ModuleRef,
    private readonly queueMetrics: QueueMetrics,
    private readonly servicePageRepository: ServicePageRepository,
  ) {}

  async read(): Promise<ServiceView> {
    const loaders = Object.entries(this.loaders());
    const pending = loaders.map(([name, load]) => this.refresh(name, load));
    await withTimeout(WAIT_MS_MAX, Promise.all(pending), null);
    const sections = loaders.map(([name]) => [name, this.readings.get(name)?.section ?? null] as const);
    return Object.fromEntries(sections) as unknown as ServiceView;
  }

  /** Reads a stale section, one read at a time. Never rejects. */
  private async refresh(name: string, load: () => Promise<unknown>): Promise<void> {
    const entry = this.readings.get(name) ?? { section: null, readAt: -Infinity, reading: null };
    this.readings.set(name, entry);
    if (performance.now() - entry.readAt < FRESH_MS) return;
    entry.reading ??= load()
      .then(
        (value) => Object.assign(entry, { section: { value }, readAt: performance.now() }),
        (error: Error) => {
          this.logger.warn({ msg: `${name} of the service could not be read`, err: error });
          entry.section = { fault: error.message };
        },
      )
      .then(() => void (entry.reading = null));
    await entry.reading;
  }

  loaders() {
    return {
      checks: (): Promise<CheckLine[]> => examineService(this.moduleRef),
      processes: () => this.servicePageRepository.processes(),
      queues: () => this.queues(),
      sizes: () => this.servicePageRepository.sizes(),
      disk: () => this.disk(),
      accounts: () => this.busiestAccounts(),
      modules: () => this.modules(),
      suspended: () => this.servicePageRepository.suspended(),
    };
  }

  private async queues(): Promise<(readonly [queue: string, jobs: Partial<Record<string, number>>])[]> {
    const samples = await this.queueMetrics.current();
    if (samples === null) throw new Error('The store of the queues does not respond');
    const jobs = new Map<string, Record<string, number>>();
    for (const { labels, value } of samples)
      jobs.set(labels.queue, { ...jobs.get(labels.queue), [labels.state]: value });
    return [...jobs].sort(([a], [b]) => a.localeCompare(b));
  }

  /** Reads the state of the disk. The last backup is null before the first one, and without an embedded database. */
  private async disk() {
    const { dataDir, embeddedFolder } = this.env;
    const { bavail, bsize } = await statfs(dataDir);
    const written = await stat(path.join(dataDir, LAST_BACKUP)).catch(() => null);
    return { freeBytes: bavail * bsize, isEmbedded: embeddedFolder !== null, backupAt: written?.mtime ?? null };
  }

  private async busiestAccounts() {
    const accounts = await this.servicePageRepository.busiestAccounts();
    return Promise.all(
      accounts.map(async ({ id, name }) => {
        const { limits } = await this.accounts.usage(asSystem, id);
        const shares = limits
          .map(({ name: limit, used, limit: max }) => ({ limit, used: used ?? 0, max }))
          .filter(({ used }) => used > 0)
          .sort((a, b) => b.used / b.max - a.used / a.max);
        return { name, shares: shares.slice(0, 3) };
      }),
    );
  }

  private async modules(): Promise<string[]> {
    const signIn = Object.keys(this.env.source).some((name) => name.startsWith('OIDC_'));
    return [...(signIn ? ['sign-in-oidc'] : []), ...(await loadExternalModules(this.env)).map(({ name }) => name)];
  }
}
