import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { BullModule, Processor, WorkerHost } from '@nestjs/bullmq';
import { Injectable, Logger, Module, type LoggerService, type OnModuleInit } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { setDefaultBackendFactory } from 'bullmq';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { until } from '../../../test/support/until.js';
import { registerQueue } from './register-queue.js';

const lines: unknown[][] = [];
const log = (...given: unknown[]) => void lines.push(given);
const logger = { log, error: log, warn: log, debug: log, verbose: log, fatal: log } satisfies LoggerService;
const told = () => lines.filter((line) => JSON.stringify(line).includes('the queue does not answer'));

@Processor('away')
class AwayProcessor extends WorkerHost {
  process(): Promise<void> {
    return Promise.resolve();
  }
}

/** Takes its time to start, as whoever waits for a database does. */
@Injectable()
class SlowStart implements OnModuleInit {
  async onModuleInit(): Promise<void> {
    await until(() => told().length >= 2, 'the queue and its worker say that their store is away');
  }
}

/** A port on which nobody listens. */
async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

beforeAll(() => setDefaultBackendFactory());
afterAll(() => Logger.overrideLogger(false));

describe('a queue whose store is away', () => {
  it('is logged from the start, and nothing is printed outside the log', async () => {
    const printed = jest.spyOn(console, 'error');
    const connection = {
      host: '127.0.0.1',
      port: await closedPort(),
      maxRetriesPerRequest: null,
      retryStrategy: () => null,
    };

    @Module({
      imports: [BullModule.forRoot({ connection, prefix: 'away' }), registerQueue('away')],
      providers: [AwayProcessor, SlowStart],
    })
    class AwayModule {}

    const app = await NestFactory.createApplicationContext(AwayModule, { logger });
    await app.close();
    expect(printed).not.toHaveBeenCalled();
    expect(told().map(([, name]) => name)).toEqual(expect.arrayContaining(['away']));
    expect(told()[0][0]).toMatchObject({ err: { code: 'ECONNREFUSED' } });
  });
});
