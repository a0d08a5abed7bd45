import { Injectable, Logger } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { LRUCache } from 'lru-cache';
import { DataSource } from 'typeorm';
import type { Trace } from '../../../hosting/hosting.types.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import type { LogLevel } from '../release-log.entity.js';
import { writeLines, type LogLine } from '../release-log.js';

/** A module that prints more while it is looked at is not listened to. */
const LINES_MAX = 50;

/** Releases that are looked at in this process at once; a scan ends after ten minutes at most. */
const SCANS_MAX = 1_000;
const SCAN_MS_MAX = 10 * 60_000;

/** Console levels as the log of a release knows them. A module's own error is not the reason why its release failed. */
const levels: Record<Trace['lines'][number]['level'], LogLevel> = {
  debug: 'info',
  log: 'info',
  info: 'info',
  warn: 'warning',
  error: 'warning',
};

/** What modules print and throw while they are scanned, on its way into the logs of their releases. */
@Injectable()
export class ScanTraces {
  private readonly logger = new Logger('releases');
  /** How many more lines are taken, by release. */
  private readonly left = new LRUCache<string, { lines: number }>({ max: SCANS_MAX, ttl: SCAN_MS_MAX });
  private writing: Promise<void> = Promise.resolve();

  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly pubSub: PubSub,
  ) {}

  /** Writes down what a program says. Does not wait. */
  take({ ref, lines, exceptions }: Trace): void {
    const left = this.left.get(ref.id) ?? { lines: LINES_MAX };
    this.left.set(ref.id, left);
    const said = [
      ...lines.map(({ level, message }): LogLine => ({ stage: 'scan', level: levels[level], message })),
      ...exceptions.map(({ name, message }): LogLine => {
        return { stage: 'scan', level: 'warning', message: `The module threw ${name}: ${message}` };
      }),
    ].slice(0, left.lines);
    left.lines -= said.length;
    if (said.length > 0) this.writing = this.writing.then(() => this.write(ref.id, said));
  }

  private async write(releaseId: string, lines: LogLine[]): Promise<void> {
    try {
      await writeLines(releaseId, lines, this.database.manager);
      this.pubSub.publish('releases.changed', { id: releaseId });
    } catch (error) {
      this.logger.warn({ msg: 'what a module said while it was scanned is lost', err: error });
    }
  }
}
