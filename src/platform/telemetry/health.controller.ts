import { Controller, Get, Header, Res } from '@nestjs/common';
import { ApiOkResponse, ApiResponse, ApiTags } from '#api-docs';
import type { Response } from 'express';
import { Public } from '../http/public.decorator.js';
import { withTimeout } from '../limits/with-timeout.js';
import { PubSub } from '../queue/pub-sub.js';
import { Env } from '../../config/env.js';
import { HealthDto, ReadinessDto } from './health.dto.js';
import { StorageSpace } from '../blobs/storage-space.js';
import { databaseAvailability } from '../database/database-availability.js';
import { DatabaseWatch } from '../database/database-watch.js';
import { Draining } from './draining.js';

/** Timeout after which the queue is considered unavailable. */
const QUEUE_MS_MAX = 2_000;

/**
 * Longest wait of `/ready` for the queue; afterwards it reports the last known state, so that a slow response is not a
 * change.
 */
const QUEUE_WAIT_MS = 150;

@ApiTags('Health')
@Public()
@Controller()
export class HealthController {
  private asking: Promise<boolean> | null = null;
  /** Null before the first response, which is awaited. */
  private wasAnswering: boolean | null = null;

  constructor(
    private readonly databaseWatch: DatabaseWatch,
    private readonly pubSub: PubSub,
    private readonly storageSpace: StorageSpace,
    private readonly draining: Draining,
    private readonly env: Env,
  ) {}

  /** The process is alive. */
  @Get('health')
  @Header('cache-control', 'no-store')
  health(): HealthDto {
    return { status: 'ok', timestamp: new Date().toISOString() };
  }

  /**
   * Report whether the process can serve.
   *
   * Returns 200 while the database is available, and while calls continue without it, for at most a minute. An unavailable queue, a
   * clock that is off and a full disk are reported and do not change the status: calls work.
   */
  @Get('ready')
  @Header('cache-control', 'no-store')
  @ApiOkResponse({ type: ReadinessDto })
  @ApiResponse({ status: 503, type: ReadinessDto, description: 'The database does not answer, or the process stops.' })
  async ready(@Res({ passthrough: true }) response: Response): Promise<ReadinessDto> {
    const readiness = await this.readiness();
    response.status(readiness.status === 'ok' ? 200 : 503);
    return readiness;
  }

  /** Checks the database, the queue and the disk. The promise never rejects. */
  async readiness(): Promise<ReadinessDto> {
    const [isAnswered, queue, isFull] = await Promise.all([
      this.databaseWatch.check(),
      this.queueAnswers(),
      this.storageSpace.isFull(),
    ]);
    const database = isAnswered ? 'ok' : databaseAvailability.isBridged ? 'degraded' : 'down';
    const status = this.draining.isDraining ? 'stopping' : database === 'down' ? 'unavailable' : 'ok';
    const seconds = Math.round(this.databaseWatch.clockOffsetMs / 1_000);
    const clock = `${Math.abs(seconds)} s ${seconds > 0 ? 'ahead of' : 'behind'} the database`;
    return {
      status,
      database,
      queue: queue ? 'ok' : 'down',
      clock: this.databaseWatch.isClockOff ? clock : 'ok',
      storage: isFull ? 'full' : 'ok',
      worker: this.env.worker?.number,
    };
  }

  /** Pings the queue once at a time: a ping waits for an unavailable Redis. */
  private queueAnswers(): Promise<boolean> {
    this.asking ??= withTimeout(
      QUEUE_MS_MAX,
      this.pubSub.ping().then(
        () => true,
        () => false,
      ),
      false,
    ).then((isAnswering) => {
      this.asking = null;
      return (this.wasAnswering = isAnswering);
    });
    return this.wasAnswering === null ? this.asking : withTimeout(QUEUE_WAIT_MS, this.asking, this.wasAnswering);
  }
}
