import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { isDatabaseAway } from '../../../platform/database/database-outage.js';
import { LogPartitions } from './log-partitions.js';

/** How soon the log of a deleted server starts to go. */
const SWEEP_EVERY_MS = 5_000;

/** Servers looked at in one sweep, and rows one statement deletes, so that none holds its locks for long. */
const SERVERS_MAX = 20;
const DELETE_MAX = 5_000;

/** Rows that were being inserted when their server went; an insert ends within 35 s, see dataSourceOptions. */
const LAST_LOOK_AFTER = `interval '1 minute'`;

/** After this long somebody else takes over from a process that died, or looks once more. */
const NEXT_LOOK_AFTER = `interval '2 minutes'`;

const CLAIM = `
  UPDATE invocation_garbage SET due_at = now() + ${NEXT_LOOK_AFTER}
   WHERE server_id IN (SELECT server_id FROM invocation_garbage WHERE due_at <= now()
                        ORDER BY due_at LIMIT ${SERVERS_MAX} FOR UPDATE SKIP LOCKED)
  RETURNING server_id AS "serverId", deleted_at < now() - ${LAST_LOOK_AFTER} AS "isLast"`;

/** Removes the logs of deleted servers. A trigger of the table of servers notes which they are, and with the deletion itself. */
@Injectable()
export class DeletedServerLogCleaner implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Logger('logs');
  private timer: NodeJS.Timeout | null = null;
  private sweeping: Promise<void> = Promise.resolve();
  private isStopping = false;

  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly partitions: LogPartitions,
  ) {}

  onApplicationBootstrap(): void {
    this.timer = setInterval(() => void this.sweep(), SWEEP_EVERY_MS).unref();
  }

  async onApplicationShutdown(): Promise<void> {
    this.isStopping = true;
    if (this.timer) clearInterval(this.timer);
    await this.sweeping;
  }

  /** Removes what is due. Never rejects. */
  sweep(): Promise<void> {
    this.sweeping = this.sweeping.then(() => this.attempt());
    return this.sweeping;
  }

  private async attempt(): Promise<void> {
    try {
      const [claimed] = await this.database.query<[{ serverId: string; isLast: boolean }[]]>(CLAIM);
      for (const { serverId, isLast } of claimed) await this.remove(serverId, isLast);
    } catch (error) {
      const level = isDatabaseAway(error) ? 'debug' : 'error';
      this.logger[level]({ msg: 'logs of deleted servers stay until the next sweep', err: error });
    }
  }

  private async remove(serverId: string, isLast: boolean): Promise<void> {
    for (const { name, attached } of await this.partitions.list()) {
      let deleted = attached ? DELETE_MAX : 0;
      while (deleted === DELETE_MAX) {
        if (this.isStopping) return;
        const [, count] = await this.database.query<[unknown, number]>(
          `DELETE FROM ${name} WHERE ctid = ANY (ARRAY(SELECT ctid FROM ${name} WHERE server_id = $1 LIMIT ${DELETE_MAX}))`,
          [serverId],
        );
        deleted = count;
      }
    }
    if (isLast) await this.database.query('DELETE FROM invocation_garbage WHERE server_id = $1', [serverId]);
  }
}
