// Also run with the queue on Redis by test:long: jobs.
import { afterAll, describe, expect } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { uniqueName } from '../support/app.js';
import { exportJson } from '../support/logs/otlp.js';
import { times } from '../support/mcp/calls.js';
import { cleanUpPrograms, databaseUrlOf, postgresOf, runProgram, usedDataFolder } from '../support/program.js';
import { until } from '../support/until.js';
import { verifies } from '../support/verifies.js';

const SLOW_MS = 300_000;
const REQUESTS = 30;
const LINES = 10_000;
/** Lines of one invocation, all of one millisecond: their order is that in which they were sent. */
const LINES_OF_ONE = 9;

afterAll(cleanUpPrograms, SLOW_MS);

/** Lines of one request by invocation, each with a text of its own that ends with its place. */
function linesOf(request: number): string[][] {
  const count = Math.floor(((request + 1) * LINES) / REQUESTS) - Math.floor((request * LINES) / REQUESTS);
  const texts = times(count, (n) => `request ${request}, line ${String(n).padStart(3, '0')}`);
  return times(Math.ceil(count / LINES_OF_ONE), (n) => texts.slice(n * LINES_OF_ONE, (n + 1) * LINES_OF_ONE));
}

/** The path and the body of a request: every second one is an export of OTLP, with a trace for each invocation. */
function requestOf(request: number): [path: string, body: object] {
  const at = new Date();
  if (request % 2 === 0) {
    const logs = (texts: string[]) => texts.map((message) => ({ message, timestamp: at.toISOString() }));
    return ['logs', linesOf(request).map((texts) => ({ timestamp: at.toISOString(), logs: logs(texts) }))];
  }
  const sent = linesOf(request).flatMap((texts) => {
    const traceId = randomBytes(16).toString('hex');
    return texts.map((body) => ({ at, body, traceId }));
  });
  return ['otlp/v1/logs', exportJson(sent)];
}

describe('10,000 lines that three accounts send in 30 requests', () => {
  verifies(
    'log-batches:once',
    'are each in the log once and in order, after their worker was killed and Postgres died',
    async () => {
      const { dataDir, key } = await usedDataFolder();
      const redis = process.env.TEST_REDIS_URL;
      const settings = {
        DATA_DIR: dataDir,
        QUEUE_PREFIX: uniqueName('queue'),
        ...(redis === undefined ? {} : { REDIS_URL: redis }),
      };
      const api = runProgram('main.js', { ...settings, ROLES: 'api' });
      const url = await api.url();
      const ask = async (asKey: string, method: string, path: string, body?: object) => {
        const headers = { authorization: `Bearer ${asKey}`, 'content-type': 'application/json' };
        const response = await fetch(`${url}${path}`, { method, headers, body: body && JSON.stringify(body) });
        const text = await response.text();
        expect([path, response.status < 300, text]).toEqual([path, true, text]);
        return JSON.parse(text) as { id: string; key: string };
      };
      const senders = await Promise.all(
        ['one', 'two', 'three'].map(async (name) => {
          const { id } = await ask(key, 'POST', '/accounts', { name, kind: 'user' });
          const { key: own } = await ask(key, 'POST', `/accounts/${id}/api-keys`, { name: 'test' });
          await ask(own, 'PUT', `/namespaces/${name}`);
          await ask(own, 'PUT', `/servers/${name}/server`, {});
          return { key: own, path: `/servers/${name}%2Fserver` };
        }),
      );
      const open = async () => {
        const client = new pg.Client(await databaseUrlOf(dataDir));
        client.on('error', () => undefined);
        await client.connect();
        return client;
      };
      const count = async (client: pg.Client, from: string) =>
        Number((await client.query<{ count: string }>(`SELECT count(*) FROM ${from}`)).rows[0].count);

      const worker = runProgram('main.js', { ...settings, ROLES: 'worker' });
      await worker.url();
      const [watcher, blocker] = [await open(), await open()];
      const requests = times(REQUESTS, requestOf);
      const startedAt = performance.now();
      const sent = Promise.all(
        requests.map(([path, body], n) => {
          const sender = senders[n % senders.length];
          return ask(sender.key, 'POST', `${sender.path}/${path}`, body);
        }),
      );
      await until(async () => (await count(watcher, 'invocations')) > 0, 'some are written');
      await blocker.query('BEGIN; LOCK TABLE invocations IN SHARE MODE');
      await sent;
      const sentMs = performance.now() - startedAt;
      const blocked = `pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%INSERT INTO invocations%'`;
      await until(async () => (await count(watcher, blocked)) > 0, 'a batch is being written');
      worker.kill('SIGKILL');
      await worker.ended;
      const [written, waiting] = [await count(watcher, 'invocations'), await count(watcher, 'log_batches')];
      await blocker.query('ROLLBACK');
      process.kill((await postgresOf(dataDir)) as number, 'SIGKILL');
      await Promise.all([watcher, blocker].map((client) => client.end().catch(() => undefined)));
      process.stdout.write(
        `sent in ${Math.round(sentMs)} ms; at the kill ${written} invocations were written and ${waiting} of ${REQUESTS} requests waited\n`,
      );
      expect(waiting).toBeGreaterThan(0);

      const next = runProgram('main.js', { ...settings, ROLES: 'worker' });
      await next.url();
      const after = await until(open, 'Postgres is back');
      await until(async () => (await count(after, 'log_batches')) === 0, 'all are written', 120_000);
      const { rows } = await after.query<{ texts: string[] }>(
        `SELECT (SELECT json_agg(line ->> 'message' ORDER BY place)
                   FROM jsonb_array_elements(lines) WITH ORDINALITY AS entry(line, place)) AS texts FROM invocations`,
      );
      const expected = times(REQUESTS, linesOf).flat();
      const sorted = (all: string[][]) => all.map((texts) => texts.join('\n')).sort();
      expect(sorted(rows.map(({ texts }) => texts))).toEqual(sorted(expected));
      const counted = await after.query<{ sum: string }>('SELECT sum(invocations) FROM invocation_hours');
      expect(Number(counted.rows[0].sum)).toBe(expected.length);
      await after.end();
    },
    SLOW_MS,
  );
});
