import { Injectable, Logger } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { Trace } from '../../../hosting/hosting.types.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import type { LogLevel, LogLine } from '../release-log.entity.js';
import { ReleaseLogRepository } from '../release-log.repository.js';

/** Lines a module may print while it is scanned; the rest is dropped. */
const LINES_MAX = 50;

/** Concurrent scans in this process; a scan ends after ten minutes at most. */
const SCANS_MAX = 1_000;
const SCAN_MS_MAX = 10 * 60_000;

/** Log levels by console level. `error` is reserved for the reason why a release failed. */
const levels: Record<Trace['lines'][number]['level'], LogLevel> = {
  debug: 'info',
  log: 'info',
  info: 'info',
  warn: 'warning',
  error: 'warning',
};

/** Writes what modules print and throw during a scan into the logs of their releases. */
@Injectable()
export class ScanTraces {
  private readonly logger = new Logger('releases');
  /** Lines that are still accepted, by release. */
  private readonly left = new LRUCache<string, { lines: number }>({ max: SCANS_MAX, ttl: SCAN_MS_MAX });
  private writing: Promise<void> = Promise.resolve();

  constructor(
    private readonly logs: ReleaseLogRepository,
    private readonly pubSub: PubSub,
  ) {}

  /** Appends the lines and exceptions of a trace to the release's log, in the background. */
  take({ ref, lines, exceptions }: Trace): void {
    const left = this.left.get(ref.id) ?? { lines: LINES_MAX };
    this.left.set(ref.id, left);
    const written = [
      ...lines.map(({ level, message }): LogLine => ({ stage: 'scan', level: levels[level], message })),
      ...exceptions.map(({ name, message }): LogLine => {
        return { stage: 'scan', level: 'warning', message: `The module threw ${name}: ${message}` };
      }),
    ].slice(0, left.lines);
    left.lines -= written.length;
    if (written.length > 0) this.writing = this.writing.then(() => this.write(ref.id, written));
  }

  private async write(releaseId: string, lines: LogLine[]): Promise<void> {
    try {
      await this.logs.append(releaseId, lines);
      this.pubSub.publish('releases.changed', { id: releaseId });
    } catch (error) {
      this.logger.warn({ msg: 'the output of a module during its scan is lost', err: error });
    }
  }
}
