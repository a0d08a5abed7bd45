import { InjectQueue, Processor, WorkerHost } from '@nestjs/bullmq';
import { Injectable, Module } from '@nestjs/common';
import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Job, Queue } from 'bullmq';
import { defineModule, jobOptions, registerQueue, Schedule } from '../../../src/extension.js';
import { startApp, testApp } from '../../support/app.js';
import { until } from '../../support/until.js';

let runs: number[] = [];
let act: (digest: Digest) => Promise<void> = () => Promise.resolve();

@Injectable()
class Digest {
  @Schedule('* * * * * *')
  async send(dueAt: Date) {
    runs.push(dueAt.getTime());
    await act(this);
  }
}

const mails: string[] = [];

@Processor('digest-mails')
class MailsProcessor extends WorkerHost {
  constructor(@InjectQueue('digest-mails') readonly queue: Queue) {
    super();
  }

  process({ data, attemptsMade }: Job<{ to: string }>): Promise<void> {
    mails.push(`${data.to} ${attemptsMade}`);
    return attemptsMade === 0 ? Promise.reject(new Error('Try again')) : Promise.resolve();
  }
}

@Module({ imports: [registerQueue('digest-mails')], providers: [Digest, MailsProcessor] })
class DigestModule {}

const digest = defineModule({ name: 'digest', module: () => DigestModule, roles: ['worker'] });
const app = testApp({ METRICS_TOKEN: 'open' }, {}, [digest]);

beforeEach(() => {
  runs = [];
  act = () => Promise.resolve();
});

describe('@Schedule', () => {
  it('runs once over all processes', async () => {
    const sibling = await app.sibling({ ROLES: 'worker' });
    try {
      await until(() => runs.length >= 4, 'it runs four times');
    } finally {
      await sibling.close();
    }
    expect(new Set(runs).size).toBe(runs.length);
    expect(runs.every((dueAt) => dueAt % 1_000 === 0)).toBe(true);
    // The end of one process leaves the schedule to the other one.
    const count = runs.length;
    await until(() => runs.length > count + 1, 'it runs in the other process');
  });

  it('runs again after a failure', async () => {
    act = () => Promise.reject(new Error('Not today'));
    await until(() => runs.length >= 2, 'it fails twice');
    const { text } = await app.as().get('/metrics');
    expect(text).toContain('slipway_queue_jobs{queue="schedules",state="failed"}');
  });

  it('can use the database until it ends, although its process stops', async () => {
    const other = await startApp({}, {}, [digest]);
    let end: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (end = resolve));
    let isHeld = false;
    let isDone = false;
    act = async (instance) => {
      if (isHeld || instance !== other.get(Digest)) return;
      isHeld = true;
      await held;
      await other.database.query('SELECT 1');
      isDone = true;
    };
    await until(() => isHeld, 'it runs in the other service');
    const closed = other.close();
    runs = [];
    await until(() => runs.length >= 7, 'more time has passed than a worker of the queue has to close');
    end();
    await closed;
    expect(isDone).toBe(true);
  });

  it('fails the start with an expression that is invalid', async () => {
    class Wrong {
      @Schedule('0 25 * * *')
      run() {
        return undefined;
      }
    }
    @Module({ providers: [Wrong] })
    class WrongModule {}
    const wrong = defineModule({ name: 'wrong', module: () => WrongModule, roles: ['worker'] });
    await expect(startApp({}, {}, [wrong])).rejects.toThrow('@Schedule of WrongModule.Wrong.run');
  });
});

describe('@Processor', () => {
  it('runs jobs of a queue of the module, and again after a failure; the metrics show the queue', async () => {
    const { queue } = app.get(MailsProcessor);
    await queue.add('send', { to: 'ada' }, jobOptions);
    await until(() => mails.length === 2, 'the job runs twice');
    expect(mails).toEqual(['ada 0', 'ada 1']);
    const { text } = await app.as().get('/metrics');
    expect(text).toContain('slipway_queue_jobs{queue="digest-mails",state="waiting"}');
  });
});
