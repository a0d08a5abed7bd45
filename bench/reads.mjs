#!/usr/bin/env node
// Reads of the registry, `GET /servers/{qualifiedName}`, next to a hand-written `node:http` handler that checks a cached
// key, runs a query for the same columns on a `pg` pool of the same size, and shapes the same answer. Rounds are interleaved.
// Last, pages of `GET /accounts/me/usable` of an account with 10,000 connections and servers.
//
//   node bench/reads.mjs [--rounds 5] [--calls 4000] [--callers 1,16]

import { Agent, createServer, request as httpRequest } from 'node:http';
import { createHash, randomBytes } from 'node:crypto';
import { parseArgs } from 'node:util';
import pg from 'pg';
import {
  cpuUsOf,
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

const POOL = 16;
/** Connections and servers of the account whose usable ones are listed. */
const USABLE = 10_000;
const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    calls: { type: 'string', default: '4000' },
    callers: { type: 'string', default: '1,16' },
    port: { type: 'string' }, // set by the bench itself: be the bare server
  },
});

/** The query that somebody would write. */
const DETAIL_SQL = `
  SELECT s.id, n.name AS namespace, s.name, s.display_name AS "displayName", s.description, s.slug,
         s.snapshot, s.scan_passed AS "scanPassed", s.icon_url AS "iconUrl", i.source AS "iconSource"
    FROM servers s JOIN namespaces n ON n.id = s.namespace_id
    LEFT JOIN server_icons i ON i.server_id = s.id AND i.hash IS NOT NULL
   WHERE n.name = $1 AND lower(s.name) = lower($2)`;
let embedded;

/** The bare server, in a process of its own like the service. */
async function serveByHand() {
  const { toServerDetailDto } = await import('../dist/src/modules/servers/server.mapper.js');
  const pool = new pg.Pool({ connectionString: process.env.BENCH_DATABASE_URL, max: POOL });
  const keys = new Map();
  const urls = {
    icon: () => null,
    run: (slug) => `http://127.0.0.1/${slug}`,
    bundle: () => '',
    remoteTypes: ['external_shttp'],
  };
  const isKnown = async (key) => {
    const hash = createHash('sha256').update(key).digest('hex');
    if (!keys.has(hash)) {
      const { rows } = await pool.query('SELECT id FROM api_keys LIMIT 1');
      keys.set(hash, rows.length > 0);
    }
    return keys.get(hash);
  };
  const server = createServer(async (request, response) => {
    if (!(await isKnown(String(request.headers.authorization).replace(/^Bearer /, '')))) {
      return response.writeHead(401).end();
    }
    const [namespace, name] = decodeURIComponent(request.url.slice('/servers/'.length)).split('/');
    const { rows } = await pool.query(DETAIL_SQL, [namespace, name]);
    const body = JSON.stringify(toServerDetailDto(rows[0], urls, true));
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
    response.end(body);
  });
  server.listen(Number(options.port), '127.0.0.1', () => console.log(`by hand on http://127.0.0.1:${options.port}`));
  process.on('disconnect', () => process.exit(0)); // the bench that started this process has exited
}

/** Reads `url` `calls` times by `callers` callers. @returns calls a second, p50 in ms, CPU µs of the target a call */
async function read({ url, child, key }, callers, calls) {
  const agent = new Agent({ keepAlive: true, maxSockets: callers });
  const once = () =>
    new Promise((resolve, reject) => {
      const request = httpRequest(url, { agent, headers: { authorization: `Bearer ${key}` } }, (response) => {
        let text = '';
        response.on('data', (chunk) => (text += chunk));
        response.on('end', () =>
          response.statusCode === 200 && text.includes('"echo"') ? resolve() : reject(new Error(text.slice(0, 300))),
        );
      });
      request.on('error', reject).end();
    });
  const times = [];
  let left = calls;
  const cpu = cpuUsOf(child.pid).own;
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: callers }, async () => {
      while (left-- > 0) {
        const sentAt = performance.now();
        await once();
        times.push(performance.now() - sentAt);
      }
    }),
  );
  const perSecond = calls / ((performance.now() - startedAt) / 1000);
  agent.destroy();
  return { perSecond, p50: median(times), cpuUs: (cpuUsOf(child.pid).own - cpu) / calls };
}

/** Fills an account with copies of its connection and server, and reads what it may use. */
async function readUsable(service, url) {
  await service.connect('bench', 'template', url);
  const database = new pg.Client(embedded.url);
  await database.connect();
  const copies = { connections: ['connection_id'], servers: ['name', 'slug'] };
  for (const [table, names] of Object.entries(copies)) {
    const seq = table === 'connections' ? `'seq', 1000 + i,` : '';
    await database.query(
      `INSERT INTO ${table} OVERRIDING SYSTEM VALUE
       SELECT (jsonb_populate_record(t, jsonb_build_object(${seq} 'id', gen_random_uuid(), ${names.map((name) => `'${name}', 'copy' || i`)}))).*
         FROM ${table} t, generate_series(2, ${USABLE / 2}) i`,
    );
  }
  await database.query('VACUUM ANALYZE');
  await database.end();
  const route = `${service.url}/accounts/me/usable?limit=50`;
  const first = await (await fetch(route, { headers: { authorization: `Bearer ${service.key}` } })).json();
  const queries = { first: '', next: `&cursor=${first.nextCursor}`, search: '&q=copy49', needs: '&state=needs' };
  for (const [label, query] of Object.entries(queries)) {
    const times = [];
    for (let call = 0; call < 50; call += 1) {
      const sentAt = performance.now();
      await (await fetch(route + query, { headers: { authorization: `Bearer ${service.key}` } })).json();
      times.push(performance.now() - sentAt);
    }
    console.log(`usable, ${USABLE} rows, ${label}: p50 ${shown(median(times), 2)} ms`);
  }
}

async function main() {
  const rounds = integerOption('rounds', options.rounds, 1, 50);
  const calls = integerOption('calls', options.calls, 100, 100_000);
  await ensureBuilt();
  const { startEmbeddedPostgres } = await import('../dist/src/platform/embedded/embedded-postgres.js');
  embedded = await startEmbeddedPostgres({ dataDir: tempFolder(), log: () => {}, throwaway: true });
  const keys = `k1:${randomBytes(32).toString('base64')}`;
  const env = { DATABASE_URL: embedded.url, DATABASE_POOL_MAX: String(POOL), ENCRYPTION_KEYS: keys };
  const service = await startService({ env });
  const echo = await startEcho();
  await service.request('PUT', '/namespaces/bench');
  await service.publish('bench/echo', { type: 'external', upstreamUrl: `${echo.url}/mcp` });
  const bare = await startServer('by hand', './reads.mjs', [], { BENCH_DATABASE_URL: embedded.url });
  const route = '/servers/bench%2Fecho';
  const targets = [
    { label: 'by hand', url: bare.url + route, child: bare.child, key: service.key },
    { label: 'slipway', url: service.url + route, child: service.child, key: service.key },
  ];
  console.log(`${rounds} rounds of ${calls} reads a target, medians; load average ${loadAverage()}.`);
  for (const target of targets) await read(target, 16, 2000);
  for (const callers of options.callers.split(',').map(Number)) {
    const runs = targets.map(() => []);
    for (let round = 0; round < rounds; round += 1) {
      const order = round % 2 === 0 ? [0, 1] : [1, 0];
      for (const at of order) runs[at].push(await read(targets[at], callers, calls));
    }
    targets.forEach(({ label }, at) => {
      const of = (pick) => shown(median(runs[at].map(pick)), 2);
      const ratio = shown(median(runs[at].map((run, round) => run.perSecond / runs[0][round].perSecond)));
      console.log(
        `${callers} callers, ${label}: ${of((run) => run.perSecond)}/s, ratio ${ratio}, p50 ${of((run) => run.p50)} ms, ${of((run) => run.cpuUs)} µs CPU`,
      );
    });
  }
  await readUsable(service, `${echo.url}/mcp`);
}

if (options.port) await serveByHand();
else await runBench(main, { cleanUp: async () => embedded?.stop() });
