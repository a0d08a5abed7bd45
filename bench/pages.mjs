#!/usr/bin/env node
// Pages of the console at size: an account with 5,000 servers and 10,000 connections of its own, 10,000 connections of end users in
// one namespace, and 10,000 accounts. With `--rows` also that many requests of the last 24 hours in the log: seven of ten of the
// connections, the others of the servers; one of each has a fifth. Prints p50 and the slowest of 20 loads of each page.
//
//   npm run lab pages -- [--rows 5000000]

import { randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { ensureBuilt, integerOption, loadAverage, median, runBench, shown } from './run.mjs';
import { startEcho, startService, tempFolder } from './run.mjs';

const { values: options } = parseArgs({ options: { rows: { type: 'string', default: '0' } } });
const rows = integerOption('rows', options.rows, 0, 50_000_000);
const DAY_MS = 86_400_000;
const FILL_BATCH = 250_000;

const LOADS = 20;
/** Copies of rows of the template. */
const COPIES = { servers: 5_000, connections: 10_000, users: 10_000, accounts: 10_000 };
const pages = {
  Home: '/ui/',
  'Home, working': '/ui/?state=works',
  'Home, search': '/ui/?q=copy49',
  'Home, search of a tool': '/ui/?q=echo',
  Catalogue: '/ui/catalogue',
  'Catalogue, page 100': '/ui/catalogue?page=100',
  'Catalogue, search': '/ui/catalogue?q=copy49',
  Connection: '/ui/c/bench/template',
  'Namespace of end users': '/ui/n/endusers',
  'Namespace, by state': '/ui/n/endusers?state=auth_required',
  'Namespace, by metadata': '/ui/n/endusers?metadata.userId=u1',
  Calls: '/ui/calls',
  'Calls, 90 % deep': `/ui/calls?before=${idAt(Date.now() - 0.9 * DAY_MS)}`,
  'Calls of 30 days': '/ui/calls?since=30d&all',
  'Calls of a busy target': '/ui/calls?target=bench/template',
  'Calls of a quiet target': '/ui/calls?target=bench/copy-77',
  'Calls of a namespace': '/ui/calls?target=bench',
  'Calls of an account': '/ui/calls?account=bench',
  'Calls of a rare account': '/ui/calls?account=template',
  'Calls of a tool': '/ui/calls?tool=get_weather',
  'Calls of a rare tool': '/ui/calls?tool=rare_tool',
  'Calls of an unknown tool': '/ui/calls?tool=none',
  'Calls, failed': '/ui/calls?outcome=exception',
  'Calls, rare outcome': '/ui/calls?outcome=canceled',
  Server: '/ui/s/bench--echo',
  'Logs of a server': '/ui/s/bench--echo/logs',
  'Logs, 90 % deep': `/ui/s/bench--echo/logs?before=${idAt(Date.now() - 0.9 * DAY_MS)}`,
  'Logs, failed': '/ui/s/bench--echo/logs?outcome=exception',
  'Logs, rare tool': '/ui/s/bench--echo/logs?tool=rare_tool',
  'Logs, search': '/ui/s/bench--echo/logs?search=alarm',
  'Releases of a server': '/ui/s/bench--echo/releases',
  'Access of a server': '/ui/access/server/bench%2Fecho',
  Publish: '/ui/publish',
  'Add a server': '/ui/add',
  People: '/ui/people',
  'People, search': '/ui/people?q=copy49',
  Organization: '/ui/o/Acme',
  Service: '/ui/service',
  Account: '/me',
  Apps: '/me/access',
};
let embedded;

/** The least id of a time. */
function idAt(time) {
  const hex = Math.floor(time).toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`;
}

/** Writes requests of the last 24 hours, evenly over them. One in five is of the protocol, one in 1,000 failed. */
async function fillLog(database) {
  const { PartitionsRepository } = await import('../dist/src/modules/logs/store/partitions.repository.js');
  const { dataSourceOptions } = await import('../dist/src/platform/database/data-source-options.js');
  const { DataSource } = createRequire(import.meta.url)('typeorm');
  const source = await new DataSource(dataSourceOptions(embedded.url, 1)).initialize();
  const started = performance.now();
  const start = Date.now() - DAY_MS;
  const days = [start, start + DAY_MS].map((time) => new Date(time).toISOString().slice(0, 10));
  for (const day of days) await new PartitionsRepository(source).make(day);
  await source.destroy();
  const numbered = (table, condition) =>
    `SELECT id, row_number() OVER (ORDER BY ${condition} DESC, id) - 1 AS n FROM ${table} t`;
  await database.query(`CREATE TEMP TABLE c AS ${numbered('connections', `connection_id = 'template'`)};
    CREATE TEMP TABLE s AS ${numbered('servers', `name = 'echo'`)};
    CREATE UNIQUE INDEX ON c (n); CREATE UNIQUE INDEX ON s (n); ANALYZE c; ANALYZE s`);
  const [connections, servers] = [COPIES.connections, COPIES.servers];
  for (let first = 0; first < rows; first += FILL_BATCH) {
    await database.query(
      `INSERT INTO invocations (id, day, at, server_id, connection_id, status, cpu_ms, wall_ms, method, url, rpc_method, tool_name, outcome,
              caller_account, caller_kind, caller_id, caller_client, lines, search_text, jobs, call)
       SELECT r.id, (to_timestamp(ms / 1000.0) AT TIME ZONE 'UTC')::date, to_timestamp(ms / 1000.0), s.id, c.id,
              CASE WHEN c.id IS NULL THEN 200 END, CASE WHEN c.id IS NULL THEN 2 END, CASE WHEN c.id IS NULL THEN i % 997 END,
              CASE WHEN c.id IS NULL THEN 'POST' END, CASE WHEN c.id IS NULL THEN '/run/bench--echo/mcp' END,
              CASE WHEN c.id IS NULL THEN rpc END, CASE WHEN c.id IS NULL THEN tool END, CASE WHEN c.id IS NULL THEN outcome END,
              CASE WHEN c.id IS NULL THEN account END, CASE WHEN c.id IS NULL THEN 'key' END, CASE WHEN c.id IS NULL THEN key END, NULL,
              CASE WHEN c.id IS NULL THEN jsonb_build_array(jsonb_build_object('at', ms, 'level', 'info', 'message', line)) ELSE '[]' END,
              CASE WHEN c.id IS NULL THEN line ELSE '' END, '{1}',
              CASE WHEN c.id IS NOT NULL THEN jsonb_build_object('at', ms, 'status', 200, 'lines', '[]'::jsonb, 'exceptions', '[]'::jsonb,
                'outcome', outcome, 'toolName', tool, 'rpcMethod', rpc, 'timing', jsonb_build_object('totalMs', i % 997),
                'caller', jsonb_build_object('account', account, 'kind', 'key', 'credential', key, 'client', 'cursor')) END
         FROM (SELECT i, ms, (lpad(to_hex(ms), 12, '0') || '7' || substr(md5(i::text), 1, 3) || '8' || substr(md5(i::text), 4, 15))::uuid AS id,
                      CASE WHEN i % 5 = 4 THEN 'tools/list' ELSE 'tools/call' END AS rpc,
                      CASE WHEN i % 5 = 4 THEN NULL WHEN i % 50000 = 20 THEN 'rare_tool' ELSE 'get_weather' END AS tool,
                      CASE WHEN i % 1000 = 5 THEN 'exception' WHEN i % 50000 = 25 THEN 'canceled' ELSE 'ok' END AS outcome,
                      CASE WHEN i % 50000 = 30 THEN $5::uuid ELSE $4::uuid END AS account, $6::uuid AS key,
                      'forecast ' || i || ' for Oslo' || CASE WHEN i % 50000 = 35 THEN ' alarm' ELSE '' END AS line
                 FROM (SELECT i, ($1::float8 + i * ${DAY_MS}.0 / ${rows})::bigint AS ms FROM generate_series($2::bigint, $3) i) times) r
         LEFT JOIN c ON i % 10 < 7 AND c.n = CASE WHEN i / 10 % 5 = 0 THEN 0 ELSE i * 7919 % ${connections} END
         LEFT JOIN s ON i % 10 >= 7 AND s.n = CASE WHEN i / 10 % 5 = 0 THEN 0 ELSE i * 7919 % ${servers} END`,
      [start, first, Math.min(first + FILL_BATCH, rows) - 1, ...(await callers(database))],
    );
  }
  await database.query(`INSERT INTO invocation_hours (server_id, hour, invocations)
    SELECT server_id, floor(extract(epoch FROM at) / 3600), count(*) FROM invocations WHERE server_id IS NOT NULL GROUP BY 1, 2`);
  console.log(`${rows} requests written in ${shown((performance.now() - started) / 1000, 0)} s.`);
}

/** The account of the bench, another one, and the key. */
async function callers(database) {
  const { rows: found } = await database.query(
    `SELECT (SELECT n.account_id FROM namespaces n WHERE n.name = 'bench') AS me, (SELECT id FROM accounts WHERE name = 'template') AS other,
            (SELECT id FROM api_keys LIMIT 1) AS key`,
  );
  return [found[0].me, found[0].other, found[0].key];
}

/** Copies a row of a table, with values of SQL in which `i` counts. */
function copyRows(database, table, changes, count, condition) {
  const values = Object.entries(changes).map(([column, value]) => `'${column}', ${value}`);
  return database.query(
    `INSERT INTO ${table} OVERRIDING SYSTEM VALUE
     SELECT (jsonb_populate_record(t, jsonb_build_object('id', gen_random_uuid(), ${values.join(', ')}))).*
       FROM ${table} t, generate_series(2, ${count}) i WHERE ${condition}`,
  );
}

async function fill(service, url) {
  const { request } = service;
  await request('PUT', '/namespaces/bench');
  await request('PUT', '/namespaces/endusers');
  await service.publish('bench/echo', { type: 'external', upstreamUrl: url });
  await service.connect('bench', 'template', url);
  await request('PUT', '/connect/endusers/u-1', { mcpUrl: url, metadata: { userId: 'u1' } });
  const { id } = await request('POST', '/accounts', { name: 'Acme', kind: 'organization' });
  const me = await request('GET', '/accounts/me');
  await request('PUT', `/accounts/${id}/members/${me.id}`, { role: 'owner' });
  await request('POST', '/accounts', { name: 'template', kind: 'user' });
  const database = new pg.Client(embedded.url);
  await database.connect();
  const seq = `(SELECT max(seq) FROM connections) + i`;
  await copyRows(
    database,
    'servers',
    { name: `'copy' || i`, slug: `'bench--copy' || i` },
    COPIES.servers,
    `name = 'echo'`,
  );
  await copyRows(
    database,
    'connections',
    { seq, connection_id: `'copy-' || i`, status_state: `(ARRAY['connected', 'error', 'auth_required'])[1 + i % 3]` },
    COPIES.connections,
    `connection_id = 'template'`,
  );
  const userId = `'u-' || i`;
  await copyRows(database, 'connections', { seq, connection_id: userId }, COPIES.users, `connection_id = 'u-1'`);
  await copyRows(database, 'accounts', { name: `'copy' || i` }, COPIES.accounts, `name = 'template'`);
  if (rows > 0) await fillLog(database);
  await database.query('VACUUM ANALYZE');
  await database.end();
}

/** Signs in with the key. @returns the cookie */
async function signIn({ url, key }) {
  const form = await fetch(`${url}/login`, { headers: { accept: 'text/html' } });
  const cookieOf = (answer) => answer.headers.getSetCookie().map((line) => line.split(';')[0]);
  const [, token = ''] = /name="form-token" value="([^"]+)"/.exec(await form.text()) ?? [];
  const cookies = cookieOf(form);
  const answer = await fetch(`${url}/login`, {
    method: 'POST',
    redirect: 'manual',
    headers: { cookie: cookies.join('; '), 'sec-fetch-site': 'same-origin' },
    body: new URLSearchParams({ 'form-token': token, key }),
  });
  if (answer.status !== 303) throw new Error(`Not signed in: ${answer.status}`);
  return [...cookies, ...cookieOf(answer)].join('; ');
}

await runBench(
  async () => {
    await ensureBuilt();
    const { startEmbeddedPostgres } = await import('../dist/src/platform/embedded/embedded-postgres.js');
    embedded = await startEmbeddedPostgres({ dataDir: tempFolder(), log: () => {}, throwaway: true });
    const env = { DATABASE_URL: embedded.url, ENCRYPTION_KEYS: `k1:${randomBytes(32).toString('base64')}` };
    const [service, echo] = await Promise.all([startService({ env }), startEcho()]);
    await fill(service, `${echo.url}/mcp`);
    const cookie = await signIn(service);
    console.log(`${LOADS} loads of each page; load average ${loadAverage()}.`);
    for (const [label, path] of Object.entries(pages)) {
      const times = [];
      let size = 0;
      for (let load = 0; load < LOADS; load += 1) {
        const sentAt = performance.now();
        const answer = await fetch(service.url + path, {
          headers: { cookie, accept: 'text/html' },
          redirect: 'manual',
        });
        size = (await answer.text()).length;
        times.push(performance.now() - sentAt);
        if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}`);
      }
      const slowest = shown(Math.max(...times), 0);
      console.log(
        `${label.padEnd(26)} p50 ${shown(median(times), 0)} ms, slowest ${slowest} ms, ${shown(size / 1024, 0)} KB`,
      );
    }
  },
  { maxMs: 60 * 60_000, cleanUp: async () => embedded?.stop() },
);
