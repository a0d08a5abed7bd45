// Also run with the queue on Redis by test:long: jobs.
import { randomBytes } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import pg from 'pg';
import { generateApiKey } from '../../../src/modules/auth/api-key.js';
import { ApiDocument } from '../../support/documentation/api-document.js';
import { startAuthorizationServer, type AuthorizationServer } from '../../support/people/authorization-server.js';
import { newPerson } from '../../support/people/person.js';
import { cleanUpPrograms, readySettings, runProgram, type Program } from '../../support/program.js';
import { until } from '../../support/until.js';
import { freePort } from '../../support/upstream/upstream-net.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { verifies } from '../../support/verifies.js';
import { uniqueName } from '../../support/app.js';
import { WebSocket } from 'ws';

/** A text that no other text holds, with characters that are written differently in a URL. */
const canary = (name: string) => `CANARY+${name}/${randomBytes(9).toString('hex')}=`;

const METRICS_TOKEN = canary('metrics');
const CLIENT_ID = 'canaries';

/** Secrets by what they are. */
const secrets: Record<string, string> = {
  'operator key': generateApiKey(),
  'wrong key': `slipway_${randomBytes(32).toString('base64url')}`,
  'upstream header': canary('header'),
  'query value of a URL': canary('query'),
  'OAuth client secret': canary('client'),
  'config value of a header': canary('config'),
  'config value of a query': canary('config-query'),
  'value of a setup form': canary('form'),
  'server secret': canary('secret'),
  'scan credential': canary('scan'),
  'argument of a mock call': canary('mock'),
  'argument of a recorded call': canary('recorded'),
  'query value of a release': canary('release'),
  'secret of a trigger': `whsec_${randomBytes(24).toString('base64')}`,
  'metrics token': METRICS_TOKEN,
};

/** A text as it stands, percent-encoded, in hexadecimal digits, and inside of a base64 text, wherever it begins in it. */
function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const aligned = [0, 1, 2].map((before) =>
    Buffer.concat([Buffer.alloc(before), bytes])
      .toString('base64')
      // The first and the last group of digits hold bits of what stands beside.
      .slice(before === 0 ? 0 : 4, -4),
  );
  const url = aligned.map((text) => text.replaceAll('+', '-').replaceAll('/', '_'));
  return [...new Set([secret, encodeURIComponent(secret), bytes.toString('hex'), ...aligned, ...url])];
}

/** The names of the secrets that a text holds in any form. */
function foundIn(text: string): string[] {
  return Object.entries(secrets)
    .filter(([, secret]) => formsOf(secret).some((form) => text.includes(form)))
    .map(([name]) => name);
}

/** No secret: what shows that a place is searched. */
const shown = canary('shown');

/** Text that was sent to somebody, written or stored, by its place. */
const places: { place: string; text: string }[] = [];

const leaks = () => places.flatMap(({ place, text }) => foundIn(text).map((name) => `${name} in ${place}`));

let program: Program;
let url: string;
let database: pg.Client;
let redis: Redis | null = null;
let dataDir: string;
let upstream: Upstream;
let authorization: AuthorizationServer;

beforeAll(async () => {
  const settings = await readySettings(secrets['operator key']);
  dataDir = settings.DATA_DIR;
  const port = await freePort();
  const redisUrl = process.env.TEST_REDIS_URL;
  if (redisUrl) await watchRedis(redisUrl);
  database = new pg.Client(settings.DATABASE_URL);
  await database.connect();
  await recordEveryRow();
  program = runProgram(
    'main.js',
    {
      ...settings,
      ...(redisUrl && { REDIS_URL: redisUrl, QUEUE_PREFIX: uniqueName('canaries') }),
      PORT: String(port),
      LOG_LEVEL: 'debug',
      LOG_FORMAT: 'json',
      ACCESS_LOG: 'true',
      METRICS_TOKEN,
      MCP_CALL_TIMEOUT_MS: '2000',
    },
    { tuning: { upstreamCallTimeoutMs: 2_000 } },
  );
  url = await program.url();
  upstream = await startUpstream();
  authorization = await startAuthorizationServer({
    registers: false,
    clients: [
      { clientId: CLIENT_ID, clientSecret: secrets['OAuth client secret'], redirectUri: `${url}/oauth/callback` },
    ],
  });
});

afterAll(async () => {
  await cleanUpPrograms();
  await Promise.all([upstream.close(), authorization.close()]);
});

/** Every row that is ever written, so that jobs and messages are found after they were deleted too. */
async function recordEveryRow(): Promise<void> {
  await database.query(`
    CREATE TABLE written_rows (place text, row text);
    CREATE FUNCTION record_row() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN INSERT INTO public.written_rows VALUES (TG_TABLE_SCHEMA || '.' || TG_TABLE_NAME, NEW::text); RETURN NULL; END $$`);
  for (const table of await tables()) {
    await database.query(
      `CREATE TRIGGER record_row AFTER INSERT OR UPDATE ON ${table} FOR EACH ROW EXECUTE FUNCTION public.record_row()`,
    );
  }
}

async function tables(): Promise<string[]> {
  const { rows } = await database.query<{ name: string }>(
    `SELECT c.oid::regclass::text AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname NOT IN ('pg_catalog', 'information_schema')`,
  );
  return rows.map(({ name }) => name).filter((name) => name !== 'written_rows');
}

/** Every command that Redis gets from now on. */
async function watchRedis(redisUrl: string): Promise<void> {
  redis = await new Redis(redisUrl).monitor();
  redis.on('monitor', (_time: string, args: string[]) => places.push({ place: 'Redis', text: args.join(' ') }));
}

interface Answer {
  status: number;
  text: string;
  body: Record<string, unknown>;
}

interface Request {
  method?: string;
  key?: string | null;
  body?: unknown;
  headers?: Record<string, string>;
  /** The answer may hold what the request holds. */
  mayEcho?: boolean;
}

/** Sends a request as the operator, and records its answer. */
async function ask(
  path: string,
  { method = 'GET', key, body, headers = {}, mayEcho = false }: Request = {},
): Promise<Answer> {
  const bearer = key === undefined ? secrets['operator key'] : key;
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      ...(bearer !== null && { authorization: `Bearer ${bearer}` }),
      ...(body !== undefined && !(body instanceof FormData) && { 'content-type': 'application/json' }),
      ...headers,
    },
    body: body === undefined || body instanceof FormData || typeof body === 'string' ? body : JSON.stringify(body),
    redirect: 'manual',
    signal: AbortSignal.timeout(60_000),
  });
  const isEndless = path.endsWith('/logs/stream');
  if (isEndless) await response.body?.cancel();
  const text = isEndless ? '' : await response.text();
  const head = JSON.stringify([...response.headers]);
  if (!mayEcho) places.push({ place: `${method} ${path.split('?')[0]}`, text: `${head}\n${text}` });
  return { status: response.status, text, body: text.startsWith('{') ? (JSON.parse(text) as Answer['body']) : {} };
}

async function put(path: string, body?: unknown, status = 201): Promise<Answer> {
  const answer = await ask(path, { method: 'PUT', body });
  expect([path, answer.status, answer.text]).toEqual([path, status, expect.anything()]);
  return answer;
}

async function publish(name: string, payload: object, files: Record<string, string> = {}): Promise<void> {
  const form = new FormData();
  form.set('payload', JSON.stringify(payload));
  for (const [part, content] of Object.entries(files)) form.set(part, new Blob([content]), `${part}.js`);
  const path = `/servers/${encodeURIComponent(name)}/releases`;
  releaseId = String((await put(path, form, 202)).body.deploymentId);
  const ended = async () => {
    const { body } = await ask(`${path}/latest`);
    if (body.status === 'SUCCESS') return true;
    throw new Error(JSON.stringify(body));
  };
  await until(ended, 'the release is published');
}

const namespace = uniqueName('canaries');
/** Of the last publication. */
let releaseId = '';
const at = (connection: string, rest = '') => `/connect/${namespace}/${connection}${rest}`;
const call = (connection: string, args: object, mayEcho = false) =>
  ask(at(connection, '/.tools/echo'), { method: 'POST', body: { message: 'hi', ...args }, mayEcho });

/** The link to the setup page of a connection. */
async function setupUrlOf(connection: string): Promise<string> {
  const { status } = (await ask(at(connection))).body as { status: { setupUrl?: string } };
  return status.setupUrl ?? '';
}

/** Sends the form of a setup page as a browser does. */
async function fillIn(connection: string, values: Record<string, string>): Promise<void> {
  const person = newPerson({ publicUrl: url, url });
  const setupUrl = await setupUrlOf(connection);
  const page = await person.open(setupUrl);
  const [, issuer = ''] = /name="client\.issuer" value="([^"]*)"/.exec(page.html) ?? [];
  const wrong = await person.press(setupUrl, undefined, { ...values, unknown: 'x', 'client.issuer': issuer });
  const done = await person.press(setupUrl, undefined, { ...values, 'client.issuer': issuer });
  for (const shown of [page, wrong, done]) places.push({ place: `setup page of ${connection}`, text: shown.html });
}

const configSchema = {
  type: 'object',
  required: ['apiKey', 'token'],
  properties: {
    apiKey: { type: 'string', 'x-from': { header: 'X-Given-Key' }, 'x-to': { header: 'X-Key' } },
    token: { type: 'string', 'x-from': { query: 'token' }, 'x-to': { query: 't' } },
  },
};

/** A worker that uses its secret and says only how long it is. */
const WORKER = `
  export default {
    async fetch(request, env) {
      if (new URL(request.url).pathname !== '/mcp') return new Response('nothing here', { status: 404 });
      const { id, method } = await request.json();
      if (id === undefined) return new Response(null, { status: 202 });
      const answer = (result) => Response.json({ jsonrpc: '2.0', id, result });
      console.log(method);
      if (method === 'initialize') {
        return answer({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'w', version: '1' } });
      }
      if (method === 'tools/list') return answer({ tools: [{ name: 'echo', inputSchema: { type: 'object' } }] });
      if (method === 'tools/call') return answer({ content: [{ type: 'text', text: String(env.KEY.length) }] });
      return Response.json({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no such method' } });
    },
  };`;

/** Uses every kind of secret, rightly and wrongly. */
async function plant(): Promise<void> {
  await put(`/namespaces/${namespace}`);
  // Keys: in the answer that creates them, and nowhere else.
  for (const name of ['key of an account', 'key of an uplink']) {
    const made = await ask('/accounts/me/api-keys', { method: 'POST', body: { name }, mayEcho: true });
    secrets[name] = String(made.body.key);
  }
  await ask('/namespaces', { key: secrets['key of an account'] });
  await ask('/namespaces', { key: secrets['wrong key'] });
  await ask(`/namespaces?token=${secrets['wrong key']}`);

  const [header, query] = [secrets['upstream header'], encodeURIComponent(secrets['query value of a URL'])];
  const metadata = { shown };
  await put(at('header'), { mcpUrl: `${upstream.url}?key=${query}`, headers: { 'X-Key': header }, metadata });
  await put(at('dead'), {
    mcpUrl: `http://127.0.0.1:1/mcp?key=${query}`,
    headers: { authorization: `Bearer ${header}` },
  });
  for (const mcpUrl of [`${upstream.url}?key=${query}`, `http://127.0.0.1:1/mcp?key=${query}`]) {
    const probe = { method: 'POST', body: { mcpUrl, headers: { 'X-Key': header } } };
    expect((await ask('/accounts/me/probe', probe)).status).toBe(200);
  }
  await put(at('header'), `{"headers": {"X-Key": "${header}"`, 400);
  await put(at('header'), { headers: { 'X-Key': [header] } }, 400);
  for (const name of ['header', 'dead']) {
    await call(name, {});
    await call(name, { a: 1 });
    await ask(at(name, '/diagnosis'));
  }
  expect(upstream.requests.some(({ headers }) => headers['x-key'] === header)).toBe(true);

  const registered = `${namespace}/registered`;
  await put(`/servers/${encodeURIComponent(registered)}`, {});
  const release = encodeURIComponent(secrets['query value of a release']);
  const scanCredentials = { apiKey: secrets['scan credential'], token: secrets['scan credential'] };
  await publish(registered, {
    type: 'external',
    upstreamUrl: `${upstream.url}?k=${release}`,
    configSchema,
    scanCredentials,
  });
  const [config, given] = [secrets['config value of a header'], encodeURIComponent(secrets['config value of a query'])];
  const made = await put(at('config'), { server: registered, headers: { 'X-Given-Key': config } });
  await put(at('config'), { mcpUrl: `${String(made.body.mcpUrl)}?token=${given}` }, 200);
  expect((await call('config', {})).status).toBe(200);
  await put(at('form'), { server: registered });
  const form = secrets['value of a setup form'];
  await fillIn('form', { 'headers.X-Given-Key': form, 'query.token': form });
  await call('form', {});
  const run = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo', arguments: { message: 'hi' } } };
  const slug = registered.replace('/', '--');
  const values = { 'X-Given-Key': config };
  await ask(`/run/${slug}?token=${given}`, { method: 'POST', body: run, headers: values });
  await ask(`/run/${slug}`, { method: 'POST', body: run, headers: values });

  const guarded = await authorization.protect(upstream.url);
  // Shorter than the time before its end at which a token is renewed.
  authorization.setAccessTokenTtl(20);
  await put(at('oauth'), { mcpUrl: guarded.url });
  await fillIn('oauth', {
    'client.id': CLIENT_ID,
    'client.secret': secrets['OAuth client secret'],
    'key.header': 'Authorization',
    'key.value': '',
  });
  await until(async () => (await call('oauth', {})).status === 200, 'the connection is authorized');
  await until(async () => (await call('oauth', {})) && authorization.refreshes > 0, 'its token is refreshed');
  authorization.refuseTokens('invalid_grant');
  await call('oauth', {});
  for (const [i, { accessToken, refreshToken }] of authorization.issued.entries()) {
    secrets[`access token ${i}`] = accessToken;
    if (refreshToken !== undefined) secrets[`refresh token ${i}`] = refreshToken;
  }
  for (const seen of authorization.seen) {
    const code = seen.params.get('code');
    if (code !== null) secrets['authorization code'] = code;
    const verifier = seen.params.get('code_verifier');
    if (verifier !== null) secrets['PKCE verifier'] = verifier;
  }

  const hosted = `${namespace}/hosted`;
  await put(`/servers/${encodeURIComponent(hosted)}`, {});
  const setSecret = `/servers/${encodeURIComponent(hosted)}/secrets`;
  await put(setSecret, { name: 'KEY', value: secrets['server secret'] }, 200);
  await put(setSecret, { name: '!', value: secrets['server secret'] }, 400);
  await publish(hosted, { type: 'hosted', secretNames: ['KEY'] }, { module: `// ${shown}\n${WORKER}` });
  await put(at('hosted'), { server: hosted });
  expect((await call('hosted', {})).text).toContain(String(secrets['server secret']?.length));

  await put(at('mock'), { server: registered, mock: { enabled: true } });
  await call('mock', { message: secrets['argument of a mock call'] }, true);
  await put(at('header', '/recording'), { enabled: true }, 200);
  await call('header', { message: secrets['argument of a recorded call'] }, true);
  const delivery = { url: 'https://127.0.0.1/hook', secret: secrets['secret of a trigger'] };
  await ask(at('header', '/.triggers/x'), { method: 'POST', body: { delivery } });

  await put(at('uplink'), { transport: 'uplink' });
  const headers = { authorization: `Bearer ${secrets['key of an uplink']}` };
  const socket = new WebSocket(`${url.replace('http', 'ws')}${at('uplink')}`, { headers });
  socket.on('error', () => undefined);
  await until(async () => (await ask(at('uplink', '/uplink'))).status === 200, 'the uplink is paired');
  socket.close();
}

/** Reads everything that can be read. */
async function sweep(): Promise<void> {
  const document = await ApiDocument.read();
  const connections = ['header', 'dead', 'config', 'form', 'oauth', 'hosted', 'mock', 'uplink'];
  for (const { method, path } of document.operations) {
    // The owner reads what was recorded.
    if (method !== 'GET' || path === '/metrics' || path.includes('/recording/')) continue;
    for (const server of ['registered', 'hosted']) {
      for (const connectionId of path.includes('{connectionId}') ? connections : ['']) {
        const parameters: Record<string, string> = {
          namespace,
          connectionId,
          qualifiedName: `${namespace}/${server}`,
          id: 'latest',
          accountId: 'me',
          toolPath: 'echo',
          toolName: 'echo',
        };
        await ask(path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(parameters[name] ?? 'x')));
      }
    }
  }
  const { text } = await ask('/metrics', { key: METRICS_TOKEN });
  expect(text).toContain('process_resident_memory_bytes');
}

async function filesBelow(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    places.push({ place: `the file ${path.slice(folder.length)}`, text: (await readFile(path)).toString('latin1') });
  }
}

async function rows(): Promise<void> {
  for (const table of await tables()) {
    const { rows: found } = await database.query<{ row: string }>(`SELECT t::text AS row FROM ${table} t`);
    for (const { row } of found) places.push({ place: `the table ${table}`, text: row });
  }
  const { rows: written } = await database.query<{ place: string; row: string }>('SELECT place, row FROM written_rows');
  for (const { place, row } of written) places.push({ place: `a row of ${place}`, text: row });
}

describe('planted secrets', () => {
  it('are detected in plain form, in a URL, in hexadecimal digits and anywhere inside of base64', () => {
    const [name, secret] = ['query value of a URL', secrets['query value of a URL']];
    const texts = [0, 1, 2, 3].map((before) => Buffer.from(`${'x'.repeat(before)}${secret}&y`));
    const encodings = texts.flatMap((text) => [
      text.toString('base64'),
      text.toString('base64url'),
      text.toString('hex'),
    ]);
    for (const text of [`a ${secret} b`, encodeURIComponent(secret), ...encodings])
      expect(foundIn(text)).toEqual([name]);
    expect(foundIn(shown)).toEqual([]);
  });

  verifies('service:canaries', 'are found in no response, log line, metric, job, table and file', async () => {
    await plant();
    await sweep();
    await filesBelow(dataDir);
    program.kill('SIGTERM');
    expect(await program.ended).toBe(0);
    await rows();
    await database.end();
    redis?.disconnect();
    places.push(
      ...program
        .output()
        .split('\n')
        .map((text) => ({ place: 'the log', text })),
    );
    const isIn = (start: string, text: string) =>
      places.some((one) => one.place.startsWith(start) && one.text.includes(text));
    const jobs = redis ? 'Redis' : 'a row of bullmq.';
    expect([
      isIn('GET /connect/', shown),
      isIn('the table connections', shown),
      isIn('a row of public.connections', shown),
      isIn('the file /blobs/', shown),
      isIn('setup page', `${namespace}/form`),
      isIn('the log', namespace),
      isIn(jobs, releaseId),
    ]).toEqual(Array(7).fill(true));
    expect(program.output()).toContain('"level":"debug"');
    expect([...new Set(leaks())]).toEqual([]);
  });
});
