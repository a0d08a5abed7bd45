#!/usr/bin/env node
// Runtime logs. First taking them in: the service records small invocations and writes them, next to the same rows by its
// one statement, by COPY and one by one, in turns. Then searching them: one day with 10,000,000 lines while it is open,
// its last part without an index, and when it is closed. Postgres is the embedded one, on a folder of its own: about 5 GB.
//
//   node bench/logs.mjs [--rows 100000] [--rounds 3] [--lines 10000000] [--repeat 30] [--only ingest,search]

import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { cpuUsOf, ensureBuilt, integerOption, loadAverage, median, runBench, shown, tempFolder } from './run.mjs';

const jobRows = 1_000;
const linesOfOne = 4;
const serverCount = 100;
const hotShare = 5; // one server has a fifth of all
const fillBatch = 50_000;
const pageRows = 50;
const hour = 3_600_000;

const { values: options } = parseArgs({
  options: {
    rows: { type: 'string', default: '100000' },
    rounds: { type: 'string', default: '3' },
    lines: { type: 'string', default: '10000000' },
    repeat: { type: 'string', default: '30' },
    only: { type: 'string', default: 'ingest,search' },
  },
});
const rows = integerOption('rows', options.rows, 10_000, 1_000_000);
const rounds = integerOption('rounds', options.rounds, 1, 20);
const lines = integerOption('lines', options.lines, 400_000, 100_000_000);
const repeat = integerOption('repeat', options.repeat, 5, 1_000);
const only = options.only.split(',');

let embedded;
let client;
let database;
const built = (path) => import(`../dist/src/${path}.js`);
const seconds = (since) => (performance.now() - since) / 1000;

async function open() {
  await ensureBuilt();
  const { startEmbeddedPostgres } = await built('platform/embedded/embedded-postgres');
  const { migrate } = await built('platform/database/migrations');
  const { migrateQueue } = await built('platform/queue/queue-backend');
  const { dataSourceOptions } = await built('platform/database/data-source-options');
  embedded = await startEmbeddedPostgres({ dataDir: tempFolder(), log: () => {}, throwaway: false });
  await migrate(embedded.url, () => migrateQueue(embedded.url));
  client = new pg.Client(embedded.url);
  client.on('error', (error) => console.error(`database: ${error.message}`));
  await client.connect();
  const { DataSource } = createRequire(import.meta.url)('typeorm');
  database = await new DataSource(dataSourceOptions(embedded.url, 4)).initialize();
  await client.query(`
    WITH owner AS (INSERT INTO accounts (id, name, kind, is_operator) VALUES (gen_random_uuid(), 'bench', 'user', false) RETURNING id),
         space AS (INSERT INTO namespaces (name, account_id) SELECT 'bench-logs', id FROM owner RETURNING id)
    INSERT INTO servers (id, namespace_id, name, display_name, slug)
    SELECT ${serverIdSql('n')}, space.id, 'server-' || n, 'Server', 'bench-logs--server-' || n
      FROM space, generate_series(0, ${serverCount - 1}) n`);
}

const serverIdSql = (n) => `('00000000-0000-4000-8000-' || lpad((${n})::text, 12, '0'))::uuid`;
const serverId = (n) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

// ---- Taking in

/** A small invocation, as it comes out of the queue: one line of 60 characters. */
function makeRows(count, uuidV7) {
  const at = Date.now();
  return Array.from({ length: count }, (_, n) => ({
    id: uuidV7(),
    serverId: serverId(n % serverCount),
    releaseId: null,
    at,
    method: 'POST',
    url: '/run/bench-logs--server/mcp',
    rpcMethod: 'tools/call',
    toolName: 'get_weather',
    status: 200,
    outcome: 'ok',
    cpuMs: 2,
    wallMs: 12,
    lines: [{ at, level: 'log', message: `forecast ${n} for Oslo fetched from the cache in ${n % 97} ms, ok` }],
    exceptions: [],
    payload: null,
    leftOut: 0,
  }));
}

const inJobs = (all) =>
  Array.from({ length: Math.ceil(all.length / jobRows) }, (_, n) => all.slice(n * jobRows, (n + 1) * jobRows));

/** COPY by the protocol: pg has no method for it, but lets a query of one's own speak. */
class CopyIn {
  constructor(sql, text, done) {
    Object.assign(this, { sql, text, done });
  }
  submit(connection) {
    connection.query(this.sql);
  }
  handleCopyInResponse(connection) {
    connection.sendCopyFromChunk(Buffer.from(this.text));
    connection.endCopyFrom();
  }
  handleError(error) {
    this.done(error);
  }
  handleCommandComplete() {}
  handleReadyForQuery() {
    this.done();
  }
}

function copy(sql, text) {
  return new Promise((resolve, reject) => {
    client.query(new CopyIn(sql, text, (error) => (error ? reject(error) : resolve())));
  });
}

async function copyRows(batch, columns, values) {
  const escaped = (value) =>
    value == null
      ? '\\N'
      : String(value).replace(/[\\\n\t\r]/g, (c) => ({ '\\': '\\\\', '\n': '\\n', '\t': '\\t', '\r': '\\r' })[c]);
  let text = '';
  for (let n = 0; n < batch.length; n += 1) text += `${values.map((column) => escaped(column[n])).join('\t')}\t{1}\n`;
  await copy(`COPY invocations (${columns.join(', ')}, jobs) FROM STDIN`, text);
}

/** One way to write rows: how many a second, and what a row costs the writer and Postgres. */
async function timed(label, pid, count, work) {
  const isOwn = pid === process.pid;
  const [before, writerBefore] = [cpuUsOf(process.pid), cpuUsOf(pid)];
  const started = performance.now();
  await work();
  const took = seconds(started);
  const [after, writerAfter] = [cpuUsOf(process.pid), cpuUsOf(pid)];
  const writerUs = writerAfter.own - writerBefore.own;
  const postgresUs = after.below - before.below - (isOwn ? 0 : writerUs);
  return { label, perSecond: count / took, writerUs: writerUs / count, postgresUs: postgresUs / count };
}

async function countRows() {
  return (await client.query('SELECT count(*)::int AS count FROM invocations')).rows[0].count;
}

/** The service's own path from `record` to the table, in this process and without the rest of the service. */
async function ownPath() {
  const { InvocationsService } = await built('modules/logs/ingest/invocations.service');
  const { InvocationStore } = await built('modules/logs/store/invocation-store');
  const { CallEvents } = await built('modules/logs/call.events');
  const { InvocationsRepository } = await built('modules/logs/store/invocations.repository');
  const { PartitionsRepository } = await built('modules/logs/store/partitions.repository');
  const metrics = { counter: () => {}, gauge: () => {} };
  const env = { logRetentionDays: 7, accountLimits: { logBytesPerDay: 1e15 }, sharedLogBytesPerDay: 1e15 };
  const [table, partitions] = [new InvocationsRepository(database), new PartitionsRepository(database)];
  const store = new InvocationStore(table, partitions, env, new CallEvents(), metrics);
  const service = new InvocationsService(store, { publish: () => {} }, { requireLogRoom: async () => {} }, metrics);
  return async (all) => {
    const before = await countRows();
    for (const batch of inJobs(all)) {
      for (const row of batch) service.record(row);
      await service.settle();
    }
    const written = (await countRows()) - before;
    if (written !== all.length) throw new Error(`the service wrote ${written} of ${all.length} rows`);
  };
}

async function benchIngest() {
  const { uuidV7 } = await built('platform/database/uuid-v7');
  const { INSERT_INVOCATIONS, columnValues, insertValues } = await built('modules/logs/store/invocations.repository');
  const columns = /stored \(([^)]+), jobs\)/.exec(INSERT_INVOCATIONS)[1].split(', ');
  const insert = (batch) => client.query(INSERT_INVOCATIONS, insertValues(batch, 1));
  const own = await ownPath();
  const few = Math.min(rows, 1_000);
  const here = (label, count, work) => async () => {
    const all = makeRows(count, uuidV7);
    return timed(label, process.pid, count, () => work(all));
  };
  const eachOf = (write) => async (parts) => {
    for (const part of parts) await write(part);
  };
  const ways = [
    here('the service', rows, own),
    here('the service, no lines', rows, (all) => own(all.map((row) => ({ ...row, lines: [] })))),
    here('one INSERT for 1,000 rows', rows, (all) => eachOf(insert)(inJobs(all))),
    here('COPY of 1,000 rows', rows, (all) =>
      eachOf((batch) => copyRows(batch, columns, columnValues(batch)))(inJobs(all)),
    ),
    here('one INSERT a row', few, (all) => eachOf((row) => insert([row]))(all)),
  ];
  const results = [];
  for (const way of ways) await way(); // makes the day's table, and lets code get compiled
  for (let round = 0; round < rounds; round += 1) {
    for (let n = 0; n < ways.length; n += 1) results.push(await ways[(n + round) % ways.length]());
  }
  console.log(
    `\nTaking in: ${rows} invocations with a line each, ${rounds} rounds, medians; load average ${loadAverage()}\n`,
  );
  console.log('| way                       | rows/s | of COPY | writer µs a row | Postgres µs a row |');
  console.log('|---------------------------|-------:|--------:|----------------:|------------------:|');
  const of = (label, pick) => median(results.filter((one) => one.label === label).map(pick));
  const copied = of('COPY of 1,000 rows', ({ perSecond }) => perSecond);
  for (const label of new Set(results.map((one) => one.label))) {
    const perSecond = of(label, (one) => one.perSecond);
    const cells = [
      label.padEnd(25),
      shown(perSecond, 0).padStart(6),
      shown(perSecond / copied).padStart(7),
      shown(
        of(label, (one) => one.writerUs),
        1,
      ).padStart(15),
      shown(
        of(label, (one) => one.postgresUs),
        1,
      ).padStart(17),
    ];
    console.log(`| ${cells.join(' | ')} |`);
  }
  const { rows: sizes } = await client.query(
    `SELECT sum(pg_total_relation_size(inhrelid))::float8 AS bytes FROM pg_inherits WHERE inhparent = 'invocations'::regclass`,
  );
  console.log(`\nA row takes ${shown(sizes[0].bytes / (await countRows()), 0)} bytes with its indexes.`);
}

// ---- Searching

/** The text of one invocation: four lines of 30 to 50 characters. `i` counts invocations. */
const messages = `
  'request ' || substr(md5(i::text), 1, 12) || ' for customer ' || (i * 31 % 50000) AS a,
  'calling upstream region ' || (ARRAY['eu-west','us-east','ap-south','sa-north'])[1 + i % 4] || ' took ' || i % 997 || ' ms' AS b,
  CASE WHEN i % 3 = 0 THEN 'Cache miss, fetching' ELSE 'Cache hit for' END || ' forecast:' || i % 8000 AS c,
  CASE WHEN i % 50000 = 5 THEN 'Unobtainium alarm' WHEN i % 200 = 0 THEN 'Timeout, retrying' ELSE 'done' END || ', attempt ' || i % 3 AS d`;

/** A day of invocations, evenly over its 24 hours. */
async function fillDay(start, day) {
  const { PartitionsRepository } = await built('modules/logs/store/partitions.repository');
  await new PartitionsRepository(database).make(day);
  const count = Math.floor(lines / linesOfOne);
  const line = (ms, level, text) => `jsonb_build_object('at', ${ms}, 'level', '${level}', 'message', ${text})`;
  for (let first = 0; first < count; first += fillBatch) {
    await client.query(
      `INSERT INTO invocations (id, server_id, at, day, status, cpu_ms, wall_ms, method, url, rpc_method, tool_name, outcome, caller_account, lines, search_text, jobs)
       SELECT (lpad(to_hex(ms), 12, '0') || '7' || substr(md5(i::text), 1, 3) || '8' || substr(md5(i::text), 4, 15))::uuid,
              ${serverIdSql(`CASE WHEN i % ${hotShare} = 0 THEN 0 ELSE 1 + i * 7919 % ${serverCount - 1} END`)},
              to_timestamp(ms / 1000.0), $1, 200, 2, CASE WHEN i % 50000 = 10 THEN 60000 ELSE i % 997 END, 'POST', '/run/bench-logs--server/mcp',
              CASE WHEN i % 50000 = 15 THEN 'prompts/get' ELSE 'tools/call' END, CASE WHEN i % 50000 = 20 THEN 'rare_tool' ELSE 'get_weather' END,
              CASE WHEN i % 50000 = 25 THEN 'exceededCpu' ELSE 'ok' END,
              CASE WHEN i % 50000 = 30 THEN ${serverIdSql(2)} WHEN i % 3 = 0 THEN ${serverIdSql(1)} END,
              jsonb_build_array(${line('ms', 'info', 'a')}, ${line('ms + 1', 'log', 'b')}, ${line('ms + 2', 'log', 'c')}, ${line('ms + 3', 'debug', 'd')}),
              lower(concat_ws(chr(10), a, b, c, d)), '{1}'
         FROM (SELECT i, ms, ${messages}
                 FROM (SELECT i, ($2::float8 + i * 86400000.0 / $3)::bigint AS ms FROM generate_series($4::bigint, $5) i) AS times) AS texts`,
      [day, start, count, first, Math.min(count, first + fillBatch) - 1],
    );
  }
  await client.query('VACUUM ANALYZE invocations');
}

const filters = [
  ['rare word', { search: 'unobtainium' }],
  ['word: 1 in 200', { search: 'timeout' }],
  ['of common letters', { search: 'took 7 ms' }],
  ['word: 1 in 3', { search: 'cache miss' }],
  ['unknown word', { search: 'zqxjkv' }],
  ['rare caller', { caller: serverId(2) }],
  ['caller: 1 in 3', { caller: serverId(1) }],
  ['unknown caller', { caller: serverId(3) }],
  ['rare tool', { tool: 'rare_tool' }],
  ['rare outcome', { outcome: 'exceededCpu' }],
  ['rare method', { method: 'prompts/get' }],
  ['long: 1 in 50,000', { minDurationMs: 30_000 }],
  ['long: 1 in 10', { minDurationMs: 900 }],
  ['no filter', {}],
];

async function measure(label, search, start) {
  const range = { from: new Date(start), to: new Date(start + 24 * hour) };
  for (const [server, who] of [
    [0, 'a fifth of all'],
    [7, 'a 125th'],
  ]) {
    for (const [kind, filter] of filters) {
      const times = [];
      let found;
      for (let n = 0; n < repeat + 3; n += 1) {
        const started = performance.now();
        found = await search.find(serverId(server), { ...range, ...filter }, pageRows);
        if (n >= 3) times.push(performance.now() - started);
      }
      times.sort((x, y) => x - y);
      const total = `${found.total}${found.totalIsExact ? '' : '+'}`;
      const cells = [
        label.padEnd(20),
        who.padEnd(14),
        kind.padEnd(17),
        total.padStart(7),
        shown(median(times), 1).padStart(7),
        shown(times[Math.floor(times.length * 0.95)], 1).padStart(7),
      ];
      console.log(`| ${cells.join(' | ')} |`);
    }
  }
}

async function benchSearch() {
  const { dayOf } = await built('modules/logs/store/invocation-days');
  const { PartitionMaintenance } = await built('modules/logs/store/partition-maintenance');
  const { PartitionsRepository } = await built('modules/logs/store/partitions.repository');
  const { InvocationSearchRepository } = await built('modules/logs/search/invocation-search.repository');
  const start = Date.parse(dayOf(Date.now() - 2 * 24 * hour));
  const day = dayOf(start);
  const started = performance.now();
  await fillDay(start, day);
  console.log(
    `\nSearching: ${lines} lines of one day, ${linesOfOne} an invocation, written in ${shown(seconds(started), 0)} s.`,
  );
  const partition = async () => (await new PartitionsRepository(database).list()).find((one) => one.day === day);
  const searching = () =>
    new InvocationSearchRepository(database, new PartitionsRepository(database), { databasePoolMax: 4 });
  /** Does what is due at a moment of that day, as the worker would. */
  const build = async (now) => {
    const begun = performance.now();
    await new PartitionMaintenance(null, new PartitionsRepository(database)).buildIndexes(
      await partition(),
      await new PartitionsRepository(database).searchIndexes(),
      client,
      now,
    );
    return seconds(begun);
  };
  let took = 0;
  for (let minutes = 10; minutes < 24 * 60; minutes += 10) took += await build(start + (minutes / 60) * hour);
  const indexes = await new PartitionsRepository(database).searchIndexes();
  const bare = (start + 24 * hour - Math.max(start, ...indexes.map(({ to }) => to))) / (24 * hour);
  console.log(
    `The open day: ${indexes.length} indexes, built in ${shown(took, 0)} s; ${shown(bare * 100, 1)} % of it has none.`,
  );
  console.log(`Pages of ${pageRows}, ${repeat} times each; load average ${loadAverage()}\n`);
  console.log('| the day              | the server has | filter            |   total |  p50 ms |  p95 ms |');
  console.log('|----------------------|----------------|-------------------|--------:|--------:|--------:|');
  await measure('open', searching(), start);
  took = await build(start + 48 * hour);
  await measure('closed', searching(), start);
  const { bytes } = await partition();
  console.log(
    `\nThe index over the closed day took ${shown((took * 1e6) / (lines / linesOfOne), 0)} µs an invocation to build.`,
  );
  console.log(`The day takes ${shown(bytes / 1e9, 1)} GB. Load average ${loadAverage()}.`);
}

async function main() {
  await open();
  if (only.includes('ingest')) await benchIngest();
  await client.query('TRUNCATE invocations');
  if (only.includes('search')) await benchSearch();
}

await runBench(main, {
  maxMs: 60 * 60_000,
  cleanUp: async () => {
    await database?.destroy();
    await client?.end();
    await embedded?.stop();
  },
});
