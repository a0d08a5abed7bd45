import { Controller, Get, Res } from '@nestjs/common';
import { ApiOkResponse, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { DataSource } from 'typeorm';
import { Public } from '../http/public.decorator.js';
import { withTimeout } from '../limits/with-timeout.js';
import { PubSub } from '../queue/pub-sub.js';
import { HealthDto, ReadinessDto } from './health.dto.js';
import { pingDatabase } from '../database/postgres-errors.js';

/** Longer than any healthy answer, shorter than a load balancer's patience. */
const CHECK_TIMEOUT_MS = 2_000;

@ApiTags('Health')
@Public()
@Controller()
export class HealthController {
  constructor(
    private readonly database: DataSource,
    private readonly pubSub: PubSub,
  ) {}

  /** The process is alive. */
  @Get('health')
  health(): HealthDto {
    return { status: 'ok', timestamp: new Date().toISOString() };
  }

  /** The process can serve: database and queue answer. */
  @Get('ready')
  @ApiOkResponse({ type: ReadinessDto })
  @ApiResponse({ status: 503, type: ReadinessDto, description: 'A part does not answer.' })
  async ready(@Res({ passthrough: true }) response: Response): Promise<ReadinessDto> {
    const [database, queue] = await Promise.all([
      answers(() => pingDatabase(this.database)),
      answers(() => this.pubSub.ping()),
    ]);
    const isReady = database && queue;
    response.status(isReady ? 200 : 503);
    const word = (good: boolean) => (good ? 'ok' : 'down');
    return { status: isReady ? 'ok' : 'unavailable', database: word(database), queue: word(queue) };
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
