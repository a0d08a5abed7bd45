import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { toStorableText } from '../../../platform/database/storable.js';
import { WriteBehind } from '../../../platform/database/write-behind.js';
import { ConnectionLine } from './connection-line.entity.js';
import { KEPT_DAYS } from './log-recorder.js';

/** What is kept of one line, and how many lines of one connection. */
const MESSAGE_CHARS_MAX = 8_000;
const NAME_CHARS_MAX = 200;
const KEPT_LINES_MAX = 5_000;

/** What may wait for the database, in characters of texts and of the rest of a row: 2 bytes each at most. */
const WAITING_CHARS_MAX = 16 * 1024 * 1024;
const BARE_CHARS = 300;

const SWEEP_EVERY_MS = 60_000;

/** Rows one statement deletes at most, so that none holds its locks for long. */
const DELETE_MAX = 5_000;

/** One line on its way. */
export type RecordedLine = Omit<ConnectionLine, 'seq' | 'connection'>;

/** What modules of connections print, on its way into the logs: one statement a second, bounded. */
@Injectable()
export class LineRecorder implements OnApplicationShutdown {
  private readonly logger = new Logger('connection log');
  private readonly waiting = new WriteBehind<number, RecordedLine>('connection lines', (batch) => this.write(batch), {
    of: ({ name, message }) => BARE_CHARS + (name?.length ?? 0) + message.length,
    max: WAITING_CHARS_MAX,
  });
  private readonly sweeper = setInterval(() => void this.sweep(), SWEEP_EVERY_MS).unref();
  /** Connections that have new lines since the last sweep. */
  private readonly grown = new Set<string>();
  private last = 0;

  constructor(@InjectRepository(ConnectionLine) private readonly lines: Repository<ConnectionLine>) {}

  /** Keeps a line. Does not wait, does not fail. */
  record(line: RecordedLine): void {
    this.last += 1;
    // The name of an exception is the module's to choose too; one that cannot be stored would keep all others waiting.
    const name = line.name === null ? null : toStorableText(line.name.slice(0, NAME_CHARS_MAX));
    this.waiting.set(this.last, { ...line, name, message: toStorableText(line.message.slice(0, MESSAGE_CHARS_MAX)) });
  }

  /** Writes what waits, so that a read after this tells the latest. */
  async settle(): Promise<void> {
    await this.waiting.flush();
  }

  /** Deletes what is older, or more, than is kept. */
  async sweep(): Promise<void> {
    try {
      const ids = [...this.grown];
      this.grown.clear();
      for (const id of ids) await this.cutBack(id);
      await this.lines.query(
        `DELETE FROM connection_lines WHERE seq IN (
           SELECT seq FROM connection_lines WHERE at < now() - interval '${KEPT_DAYS} days'
            ORDER BY at LIMIT ${DELETE_MAX} FOR UPDATE SKIP LOCKED)`,
      );
    } catch (error) {
      this.logger.warn({ msg: 'old lines stay until the next sweep', err: error as Error });
    }
  }

  async onApplicationShutdown(): Promise<void> {
    clearInterval(this.sweeper);
    await this.waiting.onApplicationShutdown();
  }

  /** Lines of connections that are gone by now are passed over; the lock keeps the others from going meanwhile. */
  private async write(batch: Map<number, RecordedLine>): Promise<void> {
    const lines = [...batch.values()];
    const columns = <K extends keyof RecordedLine>(name: K) => lines.map((line) => line[name]);
    await this.lines.query(
      `INSERT INTO connection_lines (connection_id, invocation_id, at, level, name, message)
       SELECT r.* FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::text[], $5::text[], $6::text[])
                AS r(connection_id, invocation_id, at, level, name, message)
         JOIN connections c ON c.id = r.connection_id FOR KEY SHARE OF c`,
      [
        columns('connectionId'),
        columns('invocationId'),
        columns('at'),
        columns('level'),
        columns('name'),
        columns('message'),
      ],
    );
    for (const { connectionId } of lines) this.grown.add(connectionId);
  }

  private async cutBack(connectionId: string): Promise<void> {
    await this.lines.query(
      `DELETE FROM connection_lines WHERE connection_id = $1 AND seq <= (
         SELECT seq FROM connection_lines WHERE connection_id = $1 ORDER BY seq DESC OFFSET ${KEPT_LINES_MAX} LIMIT 1)`,
      [connectionId],
    );
  }
}
