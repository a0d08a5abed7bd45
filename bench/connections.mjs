#!/usr/bin/env node
// The list of connections on a large table, next to the same SQL by hand: once in this process (`pg`, then
// JSON.stringify), once behind a bare `node:http` server, which adds the cost of any response over HTTP.
// Rows are copies of real connections, written straight into Postgres. Without BENCH_DATABASE_URL (an empty database,
// which is left full) an embedded Postgres is started and thrown away.
//
//   node bench/connections.mjs [--rows 1000000] [--repeat 200]

import { randomBytes } from 'node:crypto';
import { Agent, createServer, request as httpRequest } from 'node:http';
import { parseArgs } from 'node:util';
import pg from 'pg';
import {
  ensureBuilt,
  integerOption,
  loadAverage,
  median,
  runBench,
  shown,
  startEcho,
  startServer,
  startService,
  tempFolder,
} from './run.mjs';

const batchRows = 100_000;
const pageRows = 100;
const caseMaxMs = 20_000;
/** One tenant with 7 rows of 10, three with one each. */
const namespaces = ['bench-list-a', 'bench-list-b', 'bench-list-c', 'bench-list-d'];
const namespaceOf = 'GREATEST(i % 10 - 6, 0)';
/** Written by us; every other column is copied from the namespace's real connection. `i` numbers the rows. */
const written = {
  id: 'gen_random_uuid()',
  connection_id: `'c' || i`,
  name: `'Connection ' || i`,
  mcp_url: `'https://mcp-' || i % 5000 || '.example.com/mcp'`,
  metadata: `jsonb_build_object(
    'userId', 'u' || i % 100000,
    'plan', CASE WHEN i % 30 = 1 THEN 'enterprise' WHEN i % 2 = 0 THEN 'pro' ELSE 'free' END,
    'region', (ARRAY['eu', 'us', 'ap'])[i % 3 + 1])`,
  created_at: `now() - interval '1 year' + i * interval '1 second'`,
};
const hidden = /header|secret|sealed/;

const { values: options } = parseArgs({
  options: {
    rows: { type: 'string', default: '1000000' },
    repeat: { type: 'string', default: '200' },
    port: { type: 'string' }, // set by the bench itself: be the bare server
  },
});
const rows = integerOption('rows', options.rows, 10_000, 10_000_000);
const repeat = integerOption('repeat', options.repeat, 10, 10_000);
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
let embedded;
let database;

async function databaseUrl() {
  if (process.env.BENCH_DATABASE_URL) return process.env.BENCH_DATABASE_URL;
  await ensureBuilt();
  const { startEmbeddedPostgres } = await import('../dist/src/platform/embedded/embedded-postgres.js');
  embedded = await startEmbeddedPostgres({ dataDir: tempFolder(), log: () => {}, throwaway: false });
  return embedded.url;
}

/** The list's cursor says which row came last; this makes the one that a page ending with row `seq` would carry. */
async function cursorAfter(seq) {
  const { encodeCursor } = await import('../dist/src/platform/http/cursor.js');
  return encodeCursor(String(seq));
}

async function columns() {
  const { rows: found } = await database.query(
    `SELECT column_name AS name FROM information_schema.columns
     WHERE table_schema = current_schema() AND table_name = 'connections' AND is_generated = 'NEVER'
       AND is_identity = 'NO' ORDER BY ordinal_position`,
  );
  return found.map(({ name }) => name);
}

async function fill(service, mcpUrl) {
  for (const namespace of namespaces) {
    await service.request('PUT', `/namespaces/${namespace}`);
    await service.connect(namespace, 'template', mcpUrl);
  }
  const names = await columns();
  const values = names.map((name) => written[name] ?? `template.${name}`);
  const insert = `
    INSERT INTO connections (${names.join(', ')})
    SELECT ${values.join(', ')}
    FROM generate_series($1::bigint, $2::bigint) AS i
    JOIN namespaces ON namespaces.name = ($3::text[])[${namespaceOf} + 1]
    JOIN connections template ON template.namespace_id = namespaces.id AND template.connection_id = 'template'
    ORDER BY i`;
  const startedAt = performance.now();
  for (let first = 1; first <= rows; first += batchRows) {
    await database.query(insert, [first, Math.min(rows, first + batchRows - 1), namespaces]);
  }
  await database.query('VACUUM ANALYZE connections');
  console.log(`${rows} rows loaded in ${((performance.now() - startedAt) / 1000).toFixed(0)} s`);
}

/** The list by hand: newest first, one row more than the page to know whether there is a next one. */
function handSql(selected, { metadata, name, mcpUrl, afterSeq }, namespaceId) {
  const values = [namespaceId];
  const where = ['namespace_id = $1'];
  const add = (condition, value) => where.push(condition.replace('?', `$${values.push(value)}`));
  if (metadata) add('metadata @> ?::jsonb', JSON.stringify(metadata));
  if (name) add('name = ?', name);
  if (mcpUrl) add('mcp_url = ?', mcpUrl);
  if (afterSeq) add('seq < ?', afterSeq);
  const text = `SELECT ${selected.join(', ')} FROM connections WHERE ${where.join(' AND ')}`;
  return { text: `${text} ORDER BY seq DESC LIMIT ${pageRows + 1}`, values };
}

async function listByHand(selected, query, namespaceId) {
  const { rows: found } = await database.query(handSql(selected, query, namespaceId));
  return JSON.stringify({
    connections: found.slice(0, pageRows),
    nextCursor: found.length > pageRows ? found[pageRows - 1].seq : null,
  });
}

/** The bare server: no key, no checks, one query; in a process of its own like the service. */
async function serveByHand() {
  database = await openDatabase(process.env.BENCH_DATABASE_URL);
  const selected = await selectedColumns();
  const server = createServer(async (request, response) => {
    const { query, namespaceId } = JSON.parse(new URL(request.url, 'http://bench').searchParams.get('ask'));
    const body = await listByHand(selected, query, namespaceId);
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
    response.end(body);
  });
  server.listen(Number(options.port), '127.0.0.1', () => console.log(`by hand on http://127.0.0.1:${options.port}`));
  process.on('disconnect', () => process.exit(0)); // the bench that started this process has exited
}

async function openDatabase(url) {
  const client = new pg.Client(url);
  client.on('error', (error) => console.error(`database: ${error.message}`));
  await client.connect();
  return client;
}

async function selectedColumns() {
  return ['seq', ...(await columns()).filter((name) => !hidden.test(name))];
}

async function listRoute({ tenant = 0, metadata = {}, name, mcpUrl, afterSeq }) {
  const query = new URLSearchParams({ limit: String(pageRows) });
  for (const [key, value] of Object.entries(metadata)) query.set(`metadata.${key}`, value);
  if (name) query.set('name', name);
  if (mcpUrl) query.set('mcpUrl', mcpUrl);
  if (afterSeq) query.set('cursor', await cursorAfter(afterSeq));
  return `/connect/${namespaces[tenant]}?${query}`;
}

function get(service, route) {
  return new Promise((resolve, reject) => {
    const headers = service.key ? { authorization: `Bearer ${service.key}` } : {};
    const request = httpRequest(`${service.url}${route}`, { agent, headers }, (response) => {
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        if (response.statusCode === 200) resolve(text);
        else reject(new Error(`GET ${route}: ${response.statusCode} ${text.slice(0, 200)}`));
      });
    });
    request.on('error', reject);
    request.end();
  });
}

/** `seq` of the row that lies at this share of the list, newest first. */
async function seqAt(share, namespaceId, metadata = {}) {
  const matches = 'FROM connections WHERE namespace_id = $1 AND metadata @> $2::jsonb';
  const values = [namespaceId, JSON.stringify(metadata)];
  const { rows: counted } = await database.query(`SELECT count(*)::int AS count ${matches}`, values);
  const offset = Math.floor(counted[0].count * share);
  const { rows: found } = await database.query(
    `SELECT seq ${matches} ORDER BY seq DESC OFFSET ${offset} LIMIT 1`,
    values,
  );
  return found[0].seq;
}

async function casesFor(namespaceId) {
  const pro = { plan: 'pro' };
  // The large tenant's rows end in 0 to 6, and so do its users.
  const user = (turn) => ({ metadata: { userId: `u${((turn * 7919) % 10_000) * 10 + (turn % 7)}` } });
  return [
    ['no filter, first page', () => ({})],
    ['no filter, 90 % deep', fixed({ afterSeq: await seqAt(0.9, namespaceId) })],
    ['userId (10 in 1,000,000)', user],
    ['plan=pro (half), first page', () => ({ metadata: pro })],
    ['plan=pro, 90 % deep', fixed({ metadata: pro, afterSeq: await seqAt(0.9, namespaceId, pro) })],
    ['plan=pro and region=eu', () => ({ metadata: { plan: 'pro', region: 'eu' } })],
    ['no match: unknown user', () => ({ metadata: { userId: 'nobody' } })],
    ['no match: both common', () => ({ metadata: { plan: 'enterprise', region: 'eu' } })],
    ["no match: others' value", () => ({ tenant: 1, metadata: pro })], // this tenant's row numbers are all odd
    ['name', (turn) => ({ name: `Connection ${turn * 100}` })],
    ['mcpUrl (200 in 1,000,000)', (turn) => ({ mcpUrl: `https://mcp-${turn * 10}.example.com/mcp` })],
  ];
}
const fixed = (query) => () => query;

async function measure(service, bare, selected, namespaceIds, makeQuery) {
  const took = { service: [], bare: [], hand: [] };
  const deadline = performance.now() + caseMaxMs;
  let found = 0;
  for (let turn = 0; turn < repeat && (turn < 5 || performance.now() < deadline); turn += 1) {
    const query = makeQuery(turn);
    const route = await listRoute(query);
    const namespaceId = namespaceIds[query.tenant ?? 0];
    const bareRoute = `/?ask=${encodeURIComponent(JSON.stringify({ query, namespaceId }))}`;
    const lists = [
      ['service', () => get(service, route)],
      ['bare', () => get(bare, bareRoute)],
      ['hand', () => listByHand(selected, query, namespaceId)],
    ];
    const answers = {};
    for (let index = 0; index < lists.length; index += 1) {
      const [name, list] = lists[(turn + index) % lists.length]; // each is the first to touch the rows in its turn
      const startedAt = performance.now();
      answers[name] = await list();
      took[name].push(performance.now() - startedAt);
    }
    const ids = JSON.parse(answers.service).connections.map((connection) => connection.connectionId);
    const expected = JSON.parse(answers.hand).connections.map((row) => row.connection_id);
    if (ids.join() !== expected.join()) throw new Error(`${route} lists other rows than the SQL by hand`);
    found = ids.length;
  }
  const p99 = took.service.toSorted((a, b) => a - b)[Math.ceil(took.service.length * 0.99) - 1];
  const [ofService, ofBare, ofHand] = [median(took.service), median(took.bare), median(took.hand)];
  return { found, p99, service: ofService, bare: ofBare, hand: ofHand, turns: took.service.length };
}

async function main() {
  const url = await databaseUrl();
  const encryptionKey = `k1:${randomBytes(32).toString('base64')}`;
  const echo = await startEcho();
  const service = await startService({ env: { DATABASE_URL: url, ENCRYPTION_KEYS: encryptionKey } });
  database = await openDatabase(url);
  await fill(service, `${echo.url}/mcp`);
  const bare = await startServer('list by hand', './connections.mjs', [], { BENCH_DATABASE_URL: url });

  const { rows: found } = await database.query('SELECT id FROM namespaces WHERE name = ANY($1) ORDER BY name', [
    namespaces,
  ]);
  const namespaceIds = found.map(({ id }) => id);
  const selected = await selectedColumns();
  console.log(
    `lists of a tenant with 7 rows of 10 (others' value: 1 of 10); pages of ${pageRows}; load average ${loadAverage()}; p50 in ms\n`,
  );
  console.log('| list                         | rows | slipway |    p99 |    SQL | ratio | http+SQL | ratio | turns |');
  console.log('|------------------------------|-----:|--------:|-------:|-------:|------:|---------:|------:|------:|');
  const p50 = {};
  for (const [label, makeQuery] of await casesFor(namespaceIds[0])) {
    const figures = await measure(service, bare, selected, namespaceIds, makeQuery);
    p50[label] = figures.service;
    const cells = [
      label.padEnd(28),
      String(figures.found).padStart(4),
      shown(figures.service).padStart(7),
      shown(figures.p99).padStart(6),
      shown(figures.hand).padStart(6),
      shown(figures.service / figures.hand).padStart(5),
      shown(figures.bare).padStart(8),
      shown(figures.service / figures.bare).padStart(5),
      String(figures.turns).padStart(5),
    ];
    console.log(`| ${cells.join(' | ')} |`);
  }
  const depth = (deep, first) => shown(p50[deep] / p50[first]);
  console.log(`\np50 at 90 % over the first page: ${depth('no filter, 90 % deep', 'no filter, first page')} without`);
  console.log(`a filter, ${depth('plan=pro, 90 % deep', 'plan=pro (half), first page')} with plan=pro.`);
}

async function cleanUp() {
  await database?.end();
  await embedded?.stop();
}

if (options.port) await serveByHand();
else await runBench(main, { maxMs: 30 * 60_000, cleanUp });
