import { afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import type { Env } from '../../config/env.js';
import { Tuning } from '../../config/tuning.js';
import { ProcessRegistry } from './process-registry.js';
import type { ProcessesRepository } from './processes.repository.js';

const LEASE_MS = 9_000;
const FENCE_MS = (LEASE_MS * 5) / 6;

/** A registry on a database that renews by `renew`, and how often its holder heard that the lease is lost. */
async function registered(renew: () => Promise<boolean>) {
  const processes = {
    register: () => Promise.resolve('epoch'),
    renew,
    removeExpired: () => Promise.resolve(),
    remove: () => Promise.resolve(),
  };
  const database = { transaction: (work: (tx: object) => Promise<unknown>) => work({}) };
  const env = { roles: ['host'], internalUrl: null };
  const registry = new ProcessRegistry(
    processes as unknown as ProcessesRepository,
    database as unknown as DataSource,
    env as unknown as Env,
    new Tuning({ uplinkLeaseMs: LEASE_MS, runtimeLeaseMs: LEASE_MS }),
  );
  let lost = 0;
  const holder = { role: 'host' as const, lost: () => Promise.resolve(void (lost += 1)) };
  await registry.join(holder);
  expect(registry.epoch).toBe('epoch');
  return { registry, lost: () => lost };
}

const never = () => new Promise<boolean>(() => undefined);

beforeAll(() => Logger.overrideLogger(false));
beforeEach(() => void jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate'] }));
afterEach(() => void jest.useRealTimers());

describe('the fence of a lease', () => {
  it('stops the work of its holders when no heartbeat succeeds', async () => {
    const { registry, lost } = await registered(never);
    await jest.advanceTimersByTimeAsync(FENCE_MS - 10);
    expect([registry.epoch, lost()]).toEqual(['epoch', 0]);
    await jest.advanceTimersByTimeAsync(20);
    expect([registry.epoch, lost()]).toEqual([null, 1]);
  });

  it('starts at the sending of a heartbeat, not at its response', async () => {
    let answers = 1;
    const slow = () => new Promise<boolean>((resolve) => setTimeout(() => resolve(true), LEASE_MS / 3));
    const { registry, lost } = await registered(() => (answers-- > 0 ? slow() : never()));
    // Sent after a third of the lease, answered after two thirds.
    const sentMs = LEASE_MS / 3;
    await jest.advanceTimersByTimeAsync(sentMs + FENCE_MS - 10);
    expect([registry.epoch, lost()]).toEqual(['epoch', 0]);
    await jest.advanceTimersByTimeAsync(20);
    expect([registry.epoch, lost()]).toEqual([null, 1]);
  });

  it('is passed by either clock: the machine slept, or its wall clock was set back', async () => {
    const slept = await registered(never);
    jest.setSystemTime(Date.now() + LEASE_MS);
    expect([slept.registry.epoch, slept.lost()]).toEqual([null, 1]);
    const setBack = await registered(never);
    jest.setSystemTime(Date.now() - 10 * LEASE_MS);
    await jest.advanceTimersByTimeAsync(FENCE_MS + 10);
    expect([setBack.registry.epoch, setBack.lost()]).toEqual([null, 1]);
  });
});
