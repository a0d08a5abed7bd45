import { expect } from '@jest/globals';
import { uuidV7 } from '../../../src/platform/database/uuid-v7.js';
import type { Invocation } from '../../../src/modules/logs/invocation.types.js';
import { InvocationsService } from '../../../src/modules/logs/ingest/invocations.service.js';
import type { TestAccount, TestApp } from '../app.js';
import { pathOf } from '../database/server-rows.js';
import { until } from '../until.js';

/** An invocation as answers show it. */
export interface ShownInvocation {
  id: string;
  timestamp: string;
  request: { method: string; url: string };
  response: { status: number; outcome: string };
  duration: { cpuMs: number; wallMs: number };
  logs: { timestamp: string; level: string; message: string }[];
  exceptions: { timestamp: string; name: string; message: string }[];
  [ours: string]: unknown;
}

/** Answer of `GET …/logs`. */
export interface ShownLog {
  invocations: ShownInvocation[];
  total: number;
  totalIsExact: boolean;
  leftOut: number;
}

/** Values of an invocation. The others are generated. */
export type InvocationSeed = Partial<Omit<Invocation, 'lines'>> & { messages?: string[] };

/** A whole invocation. */
export function invocationOf(serverId: string, { messages = [], ...fields }: InvocationSeed = {}): Invocation {
  const at = fields.at ?? Date.now();
  return {
    id: uuidV7(at),
    serverId,
    releaseId: null,
    at,
    method: 'POST',
    url: '/run/acme--weather',
    rpcMethod: 'tools/call',
    toolName: 'forecast',
    status: 200,
    outcome: 'ok',
    cpuMs: 2,
    wallMs: 12,
    lines: messages.map((message) => ({ at, level: 'info', message })),
    exceptions: [],
    ...fields,
  };
}

/** Hands an invocation in as the run endpoint does; its id. */
export function record(app: TestApp, serverId: string, seed: InvocationSeed = {}): string {
  const invocation = invocationOf(serverId, seed);
  app.get(InvocationsService).record(invocation);
  return invocation.id;
}

/** Hands in more of one, as the runtime does. */
export function append(app: TestApp, part: Partial<Invocation> & { id: string; serverId: string }): void {
  app.get(InvocationsService).record({ lines: [], exceptions: [], ...part });
}

/** Reads the log of a server. @param query with its question mark */
export async function readLog(app: TestApp, owner: TestAccount, name: string, query = ''): Promise<ShownLog> {
  const { status, body } = await app.as(owner).get(`${pathOf(name, '/logs')}${query}`);
  expect({ status, body: body as unknown }).toMatchObject({ status: 200 });
  return body as ShownLog;
}

/** Reads it until it holds at least so many invocations. */
export function logWith(app: TestApp, owner: TestAccount, name: string, count: number, query = ''): Promise<ShownLog> {
  return until(async () => {
    const log = await readLog(app, owner, name, query);
    if (log.total >= count) return log;
    throw new Error(`${log.total} of ${count}`);
  }, `the log of ${name} holds ${count} invocations`);
}
