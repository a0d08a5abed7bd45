#!/usr/bin/env node
// The registry's list and search on a large table, next to the same SQL behind a bare `node:http` server, which adds
// the cost of any response over HTTP. Servers are written straight into Postgres. Without BENCH_DATABASE_URL (an empty
// database, which is left full) an embedded Postgres is started and thrown away.
//
//   node bench/servers.mjs [--servers 100000] [--repeat 100]

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
  startServer,
  startService,
  tempFolder,
} from './run.mjs';

const batchRows = 20_000;
const pageSize = 20;
const caseMaxMs = 20_000;
const namespaceCount = 100;
const nouns = 'calendar ticket invoice mail payment image video queue table graph search crawl map route stock'.split(
  ' ',
);
const tools = 12;

const { values: options } = parseArgs({
  options: {
    servers: { type: 'string', default: '100000' },
    repeat: { type: 'string', default: '100' },
    port: { type: 'string' }, // set by the bench itself: be the bare server
  },
});
const servers = integerOption('servers', options.servers, 5_000, 5_000_000);
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

async function openDatabase(url) {
  const client = new pg.Client(url);
  client.on('error', (error) => console.error(`database: ${error.message}`));
  await client.connect();
  return client;
}

/** Every server says `server`; one in fifteen each noun; one in a hundred is of weather; every one has tools. */
async function fill(service) {
  for (let i = 0; i < namespaceCount; i += 1) await service.request('PUT', `/namespaces/bench-servers-${i}`);
  const insert = `
    INSERT INTO servers (namespace_id, name, display_name, description, slug, use_count, popularity, created_at, snapshot)
    SELECT n.id, noun || '-' || i, initcap(noun) || ' Server ' || i,
           'A server for every ' || noun || ' of a team' || CASE WHEN i % 100 = 7 THEN ', in any weather' ELSE '' END || '.',
           'bench-' || i, uses, floor(4 * log(2, uses + 1)), now() - i * interval '1 second',
           jsonb_build_object('tools', (SELECT jsonb_agg(jsonb_build_object('name', 'get_' || noun || '_' || t)) FROM generate_series(1, ${tools}) t))
      FROM generate_series($1::int, $2::int) AS i
      CROSS JOIN LATERAL (SELECT ($3::text[])[i % ${nouns.length} + 1] AS noun, (i::bigint * 7919 % 1000)::bigint AS uses) made
      JOIN namespaces n ON n.name = 'bench-servers-' || i % ${namespaceCount}`;
  const startedAt = performance.now();
  for (let first = 1; first <= servers; first += batchRows) {
    await database.query(insert, [first, Math.min(servers, first + batchRows - 1), nouns]);
  }
  await database.query('VACUUM ANALYZE servers');
  console.log(`${servers} servers loaded in ${((performance.now() - startedAt) / 1000).toFixed(0)} s`);
}

const columns = `s.id, n.name AS namespace, s.name, s.display_name, s.description, s.verified, s.use_count, s.current_type,
  s.created_at, s.homepage, s.icon_url, i.source, n.account_id`;
const joined = `JOIN namespaces n ON n.id = s.namespace_id LEFT JOIN server_icons i ON i.server_id = s.id AND i.hash IS NOT NULL`;

/** One page and its total as one statement with an offset, for comparison. */
async function listByHand({ page = 1 }) {
  const { rows } = await database.query(
    `SELECT ${columns} FROM servers s ${joined} WHERE NOT s.unlisted
      ORDER BY s.popularity DESC, s.created_at DESC, s.id DESC OFFSET $1 LIMIT ${pageSize}`,
    [(page - 1) * pageSize],
  );
  const { rows: counted } = await database.query('SELECT count(*)::int AS total FROM servers WHERE NOT unlisted');
  return JSON.stringify({ servers: rows, total: counted[0].total });
}

/** The service's own ranking statements, run in the same order. */
async function searchByHand({ q }) {
  const { rankingOf, searchedFor } = await import('../dist/src/modules/servers/search/server-ranking.js');
  const { SqlValues } = await import('../dist/src/modules/servers/search/server-filters.js');
  const rank = async (mode) => {
    const values = new SqlValues();
    const text = rankingOf(searchedFor(q), mode, 'NOT s.unlisted', values, 500);
    return (await database.query(text, values.list)).rows;
  };
  let hits = await rank('all words');
  if (hits.length < 10) {
    await database.query('BEGIN');
    await database.query('SET LOCAL pg_trgm.word_similarity_threshold = 0.45');
    hits = await rank('some words');
    await database.query('COMMIT');
  }
  const ids = hits.slice(0, pageSize).map(({ id }) => id);
  const { rows } = await database.query(`SELECT ${columns} FROM servers s ${joined} WHERE s.id = ANY($1::uuid[])`, [
    ids,
  ]);
  const byId = new Map(rows.map((row) => [row.id, row]));
  return JSON.stringify({ servers: ids.map((id) => byId.get(id)), total: hits.length });
}

const byHand = (query) => (query.q ? searchByHand(query) : listByHand(query));

/** The bare server: no key, no checks; in a process of its own like the service. */
async function serveByHand() {
  database = await openDatabase(process.env.BENCH_DATABASE_URL);
  const server = createServer(async (request, response) => {
    const body = await byHand(JSON.parse(new URL(request.url, 'http://bench').searchParams.get('ask')));
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
    response.end(body);
  });
  server.listen(Number(options.port), '127.0.0.1', () => console.log(`by hand on http://127.0.0.1:${options.port}`));
  process.on('disconnect', () => process.exit(0)); // the bench that started this process has exited
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

async function measure(service, bare, makeQuery, isSample = false) {
  const took = { service: [], bare: [] };
  const deadline = performance.now() + caseMaxMs;
  let found = 0;
  for (let turn = 0; turn < repeat && (turn < 5 || performance.now() < deadline); turn += 1) {
    const query = makeQuery(turn);
    const route = `/servers?${new URLSearchParams({ ...query, pageSize: String(pageSize) })}`;
    const lists = [
      ['service', () => get(service, route)],
      ['bare', () => get(bare, `/?ask=${encodeURIComponent(JSON.stringify(query))}`)],
    ];
    const answers = {};
    for (let index = 0; index < lists.length; index += 1) {
      const [name, list] = lists[(turn + index) % lists.length]; // each is the first to touch the rows in its turn
      const startedAt = performance.now();
      answers[name] = JSON.parse(await list());
      took[name].push(performance.now() - startedAt);
    }
    const [ours, theirs] = [answers.service, answers.bare].map((answer) => answer.servers.map(({ id }) => id).join());
    if (ours !== theirs && !isSample) throw new Error(`${route} lists other servers than the SQL by hand`);
    if (answers.service.pagination.totalCount !== answers.bare.total) throw new Error(`${route} counts otherwise`);
    found = answers.service.pagination.totalCount;
  }
  const p99 = took.service.toSorted((a, b) => a - b)[Math.ceil(took.service.length * 0.99) - 1];
  return { found, p99, service: median(took.service), bare: median(took.bare), turns: took.service.length };
}

const fixed = (query) => () => query;

function cases() {
  const lastPage = Math.floor(servers / pageSize);
  return [
    ['list, first page', fixed({})],
    ['list, 90 % deep', (turn) => ({ page: Math.floor(lastPage * 0.9) - turn })],
    ['list, last page', fixed({ page: lastPage })],
    ['q: in every server', fixed({ q: 'server' })],
    ['q: one in 15', (turn) => ({ q: nouns[turn % nouns.length] })],
    ['q: one in 100', fixed({ q: 'weather' })],
    ['q: two words', (turn) => ({ q: `${nouns[turn % nouns.length]} weather` })],
    ['q: an exact name', (turn) => ({ q: `${nouns[(turn + 1) % nouns.length]}-${turn + 1}` })],
    ['q: half a word', (turn) => ({ q: nouns[turn % nouns.length].slice(0, -1) })],
    // Only 1,000 of the similar names are ranked. The plan decides which, and the plan by hand is another one.
    ['q: misspelt', fixed({ q: 'calender' }), true],
    ['q: nothing like it', fixed({ q: 'xylophone' })],
  ];
}

async function main() {
  const url = await databaseUrl();
  const encryptionKey = `k1:${randomBytes(32).toString('base64')}`;
  const service = await startService({ env: { DATABASE_URL: url, ENCRYPTION_KEYS: encryptionKey } });
  database = await openDatabase(url);
  await fill(service);
  const bare = await startServer('list by hand', './servers.mjs', [], { BENCH_DATABASE_URL: url });
  console.log(`pages of ${pageSize}; load average ${loadAverage()}; p50 in ms\n`);
  console.log('| list or search     |  found | slipway |    p99 | http+SQL | ratio | turns |');
  console.log('|--------------------|-------:|--------:|-------:|---------:|------:|------:|');
  const p50 = {};
  for (const [label, makeQuery, isSample] of cases()) {
    const figures = await measure(service, bare, makeQuery, isSample);
    p50[label] = figures.service;
    const cells = [
      label.padEnd(18),
      String(figures.found).padStart(6),
      shown(figures.service).padStart(7),
      shown(figures.p99).padStart(6),
      shown(figures.bare).padStart(8),
      shown(figures.service / figures.bare).padStart(5),
      String(figures.turns).padStart(5),
    ];
    console.log(`| ${cells.join(' | ')} |`);
  }
  console.log(`\np50 at 90 % over the first page: ${shown(p50['list, 90 % deep'] / p50['list, first page'])}`);
}

async function cleanUp() {
  await database?.end();
  await embedded?.stop();
}

if (options.port) await serveByHand();
else await runBench(main, { maxMs: 15 * 60_000, cleanUp });
