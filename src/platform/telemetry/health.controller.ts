import { Controller, Get, Res } from '@nestjs/common';
import { ApiOkResponse, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { Public } from '../http/public.decorator.js';
import { withTimeout } from '../limits/with-timeout.js';
import { PubSub } from '../queue/pub-sub.js';
import { HealthDto, ReadinessDto } from './health.dto.js';
import { StorageSpace } from '../blobs/storage-space.js';
import { databaseAvailability } from '../database/database-availability.js';
import { DatabaseWatch } from '../database/database-watch.js';
import { Draining } from './draining.js';

/** Longer than any healthy answer, shorter than a load balancer's patience. */
const CHECK_TIMEOUT_MS = 2_000;

@ApiTags('Health')
@Public()
@Controller()
export class HealthController {
  constructor(
    private readonly watch: DatabaseWatch,
    private readonly pubSub: PubSub,
    private readonly storage: StorageSpace,
    private readonly draining: Draining,
  ) {}

  /** The process is alive. */
  @Get('health')
  health(): HealthDto {
    return { status: 'ok', timestamp: new Date().toISOString() };
  }

  /**
   * The process can serve.
   *
   * 200 while the database answers, or calls go on without it for a while (`STALE_READ_MS`). A queue that is away, a clock
   * that is off and a full disk are named, and take no process out: calls work.
   */
  @Get('ready')
  @ApiOkResponse({ type: ReadinessDto })
  @ApiResponse({ status: 503, type: ReadinessDto, description: 'The database does not answer, or the process stops.' })
  async ready(@Res({ passthrough: true }) response: Response): Promise<ReadinessDto> {
    const readiness = await this.readiness();
    response.status(readiness.status === 'ok' ? 200 : 503);
    return readiness;
  }

  /** Asks the database, the queue and the disk. Never rejects. */
  async readiness(): Promise<ReadinessDto> {
    const [isAnswered, queue, isFull] = await Promise.all([
      this.watch.check(),
      answers(() => this.pubSub.ping()),
      this.storage.isFull(),
    ]);
    const database = isAnswered ? 'ok' : databaseAvailability.isBridged ? 'degraded' : 'down';
    const status = this.draining.isDraining ? 'stopping' : database === 'down' ? 'unavailable' : 'ok';
    const seconds = Math.round(this.watch.clockOffsetMs / 1_000);
    const clock = `${Math.abs(seconds)} s ${seconds > 0 ? 'ahead of' : 'behind'} the database`;
    return {
      status,
      database,
      queue: queue ? 'ok' : 'down',
      clock: this.watch.isClockOff ? clock : 'ok',
      storage: isFull ? 'full' : 'ok',
    };
  }
}

/** True when `ask` succeeds in time. */
async function answers(ask: () => Promise<unknown>): Promise<boolean> {
  const asked = ask().then(
    () => true,
    () => false,
  );
  return withTimeout(CHECK_TIMEOUT_MS, asked, false);
}
