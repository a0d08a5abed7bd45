/**
 * Accepts records of servers that run elsewhere.
 *
 * The invocations of one request are limited in size, redacted and stored as one row of `log_batches` before the response. At most half a
 * second later, a job writes all waiting batches in a worker (`logs.processor.ts`): one transaction writes the rows, charges the account
 * and deletes the batch, so each batch is written exactly once. Workers sweep batches older than 5 s, so the queue can be unavailable or
 * lose its jobs.
 *
 * All batches together have at most 64 MB, those of one account a quarter. Without room, requests return 503 with Retry-After, as without a
 * database.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { onViolation } from '../../../platform/database/postgres-errors.js';
import { UnavailableError } from '../../../platform/errors/domain-error.js';
import { groupBy } from '../../../platform/group-by.js';
import { Metrics } from '../../../platform/telemetry/metrics.js';
import { ServerNotFoundError } from '../../servers/servers.errors.js';
import { charsOf, CHARS_AT_ONCE } from '../ingest/invocation-buffer.js';
import { mergeInvocation } from '../ingest/invocation-bounds.js';
import type { Invocation } from '../invocation.types.js';
import { LogBatchesRepository } from './log-batches.repository.js';
import { LogsQueue } from './logs.queue.js';
import { StorageSpace } from '../../../platform/blobs/storage-space.js';

/** Time after which a client retries a request that found no room. */
const RETRY_AFTER_SECONDS = 5;

@Injectable()
export class LogBatchesService {
  private refused = 0;

  constructor(
    private readonly logBatchesRepository: LogBatchesRepository,
    private readonly logsQueue: LogsQueue,
    private readonly storageSpace: StorageSpace,
    metrics: Metrics,
  ) {
    metrics.counter(
      'slipway_log_batches_refused_total',
      'Requests with records that were rejected with 503, since too many waited to be written.',
      () => this.refused,
    );
  }

  /**
   * Stores all parts or none. Parts of one invocation are merged.
   *
   * @param tx stores them in this transaction; the batch is written within 5 s of the commit
   * @throws StorageFullError; UnavailableError if too much is waiting; ServerNotFoundError if the server was deleted meanwhile
   */
  async add(serverId: string, parts: Invocation[], tx?: EntityManager): Promise<void> {
    if (parts.length === 0) return;
    await this.storageSpace.requireLogRoom();
    const invocations: Invocation[] = [];
    let chars = 0;
    for (const ofOne of groupBy(parts, ({ id }) => id).values()) {
      for (const part of ofOne) chars += charsOf(part);
      if (chars > CHARS_AT_ONCE) {
        await nextTurn();
        chars = 0;
      }
      invocations.push(mergeInvocation(ofOne));
    }
    const id = await this.logBatchesRepository
      .add({ serverId, invocations }, tx)
      .catch(onViolation({ foreignKey: () => new ServerNotFoundError() }));
    if (id === null) {
      this.refused += 1;
      const advice = 'send the same again in a few seconds';
      throw new UnavailableError(`Too many log records are waiting to be written: ${advice}`, RETRY_AFTER_SECONDS);
    }
    this.logsQueue.enqueue();
  }
}
