#!/usr/bin/env node
// Pages of the console at size: an account with 5,000 servers and 10,000 connections of its own, 10,000 connections of end users in
// one namespace, and 10,000 accounts. Prints p50 and the slowest of 20 loads of each page.
//
//   npm run lab pages

import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { ensureBuilt, loadAverage, median, runBench, shown, startEcho, startService, tempFolder } from './run.mjs';

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
  'Calls of 30 days': '/ui/calls?since=30d&all',
  Server: '/ui/s/bench--echo',
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
  { cleanUp: async () => embedded?.stop() },
);
