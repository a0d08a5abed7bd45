import { describe, expect } from '@jest/globals';
import { verifies } from '../../../test/support/verifies.js';
import type { job as checkJob } from '../json-schema/schema-check.job.js';
import { FairThread, ThreadJobEndedError } from './fair-thread.js';

const CHECK = 'platform/json-schema/schema-check.job.js';
const VALUE = 'modules/connections/mock/simulator/schema-value.job.js';

const text = { schema: JSON.stringify({ type: 'string' }), value: 7 };

/** Tries with 15,000 texts each, none of which is allowed; each text has 100 schemas to merge: many seconds. */
const slow = {
  schema: JSON.stringify({
    type: 'array',
    minItems: 15_000,
    items: { allOf: Array.from({ length: 100 }, () => ({ type: 'string' })) },
    not: { type: 'array' },
  }),
  known: [],
};

describe('a thread for work of tenants', () => {
  verifies('limits:tenant-schemas', 'gives namespaces with waiting jobs a turn each', async () => {
    const thread = new FairThread();
    const done: string[] = [];
    const run = async (namespace: string, name: string) => {
      expect(await thread.run<typeof checkJob>(namespace, CHECK, text)).toBe('must be string');
      done.push(name);
    };
    await Promise.all([run('a', 'a1'), run('a', 'a2'), run('a', 'a3'), run('b', 'b1'), run('c', 'c1'), run('b', 'b2')]);
    expect(done).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'b2']);
  });

  verifies(
    'limits:tenant-schemas',
    'stops a job that is too slow, and runs the waiting ones in a new thread',
    async () => {
      const thread = new FairThread(1_000);
      const turns: string[] = [];
      const ended = async () => {
        await expect(thread.run<(input: object) => unknown>('a', VALUE, slow)).rejects.toThrow(ThreadJobEndedError);
        turns.push('a');
      };
      const served = async () => {
        expect(await thread.run<typeof checkJob>('b', CHECK, text)).toBe('must be string');
        turns.push('b');
      };
      await Promise.all([ended(), ended(), served()]);
      expect(turns).toEqual(['a', 'a', 'b']);
      await served();
    },
  );

  verifies('limits:tenant-schemas', 'rejects with the error of a job, and goes on', async () => {
    const thread = new FairThread();
    const broken = { ...text, schema: '{' };
    await expect(thread.run<typeof checkJob>('a', CHECK, broken)).rejects.toThrow(SyntaxError);
    await expect(thread.run<typeof checkJob>('a', CHECK, { ...text, value: () => 1 })).rejects.toThrow('cloned');
    expect(await thread.run<typeof checkJob>('a', CHECK, text)).toBe('must be string');
  });

  verifies('limits:tenant-schemas', 'refuses a job of a namespace of which 100 wait', async () => {
    const thread = new FairThread();
    const jobs = Array.from({ length: 102 }, () => thread.run<typeof checkJob>('a', CHECK, text));
    const outcomes = await Promise.allSettled([...jobs, thread.run<typeof checkJob>('b', CHECK, text)]);
    const refused = outcomes.flatMap(({ status }, at) => (status === 'rejected' ? [at] : []));
    expect(refused).toEqual([101]);
  });
});
