import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import supertest from 'supertest';
import { generateApiKey } from '../../../src/modules/auth/api-key.js';
import { VERSION } from '../../../src/config/version.js';
import { PROXY_PASSWORD, startForwardProxy, type ForwardProxy } from '../../support/forward-proxy.js';
import { parseMetrics } from '../../support/logs/prometheus.js';
import { cleanUpPrograms, dataFolder, readySettings, runProgram, type Program } from '../../support/program.js';
import { startS3 } from '../../support/s3.js';
import { issuedCertificate } from '../../support/special-upstreams/faulty-tls.js';
import { startTlsFront, type TlsFront } from '../../support/tls-front.js';
import { REDIS_SERVER, startRedis } from '../../support/redis.js';
import { until } from '../../support/until.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { freePort } from '../../support/upstream/upstream-net.js';
import { verifies } from '../../support/verifies.js';

const SLOW_MS = 120_000;
const METRICS_TOKEN = 'metrics-token-of-this-test';

/** A host name that only the proxy knows. */
const OUTSIDE = 'mcp.example.test';

/** A worker whose tool fetches a URL. */
const FETCHER = `
  export default {
    async fetch(request) {
      const { id, method, params } = await request.json();
      const answer = (result) => Response.json({ jsonrpc: '2.0', id, result });
      if (id === undefined) return new Response(null, { status: 202 });
      if (method === 'initialize') {
        return answer({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'fetcher', version: '1' } });
      }
      if (method === 'tools/list') return answer({ tools: [{ name: 'get', inputSchema: { type: 'object' } }] });
      const got = await fetch(params.arguments.url);
      return answer({ content: [{ type: 'text', text: String(got.status) + ' ' + (await got.text()).slice(0, 300) }] });
    },
  };`;

const certificate = issuedCertificate(OUTSIDE);
const key = generateApiKey();
const closed: (() => unknown)[] = [];

let proxy: ForwardProxy;
let upstream: Upstream;
/** TLS servers with a certificate of the company. */
let fronts: Record<'postgres' | 's3' | 'upstream', TlsFront>;
let settings: Record<string, string>;
let service: Program;
let url: string;

const as = (request: supertest.Test) => request.set('authorization', `Bearer ${key}`);

beforeAll(async () => {
  const folder = await dataFolder();
  const secret = async (name: string, text: string) => {
    await writeFile(join(folder, name), `${text}\n`);
    return join(folder, name);
  };
  const { DATABASE_URL, ENCRYPTION_KEYS, ...own } = await readySettings(key);
  const s3 = await startS3();
  [proxy, upstream] = await Promise.all([startForwardProxy(), startUpstream()]);
  const place = new URL(s3.blobUrl);
  const endpoint = new URL(place.searchParams.get('endpoint') ?? '');
  const database = new URL(DATABASE_URL);
  const front = async (port: string | number, isPostgres = false) => {
    const opened = await startTlsFront(Number(port), certificate, isPostgres);
    closed.push(() => opened.close());
    return opened;
  };
  fronts = {
    postgres: await front(database.port, true),
    s3: await front(endpoint.port),
    upstream: await front(upstream.port),
  };
  closed.push(
    () => s3.close(),
    () => upstream.close(),
    () => proxy.close(),
  );
  database.port = String(fronts.postgres.port);
  place.searchParams.set('endpoint', `https://127.0.0.1:${fronts.s3.port}`);
  settings = {
    ...own,
    BOOTSTRAP_API_KEY: key,
    DATABASE_URL_FILE: await secret('database', `${database.href}?sslmode=verify-full`),
    ENCRYPTION_KEYS_FILE: await secret('keys', ENCRYPTION_KEYS),
    METRICS_TOKEN_FILE: await secret('metrics', METRICS_TOKEN),
    EGRESS_PROXY_FILE: await secret('proxy', proxy.url),
    AWS_SHARED_CREDENTIALS_FILE: await secret(
      'aws',
      '[default]\naws_access_key_id = S3RVER\naws_secret_access_key = S3RVER',
    ),
    BLOB_URL: place.href,
    LOG_LEVEL: 'debug',
    NODE_EXTRA_CA_CERTS: await secret('ca.pem', certificate.ca),
    ...(await tlsRedis(front)),
  };
  service = runProgram('main.js', settings);
  url = await service.url();
}, SLOW_MS);

afterAll(async () => {
  await cleanUpPrograms();
  for (const close of closed.reverse()) await close();
});

/** `REDIS_URL` of a Redis behind TLS; nothing where Redis is not installed. */
async function tlsRedis(front: (port: number) => Promise<TlsFront>): Promise<Record<string, string>> {
  if (!existsSync(REDIS_SERVER)) return {};
  const port = await freePort();
  await startRedis(port);
  return { REDIS_URL: `rediss://127.0.0.1:${(await front(port)).port}` };
}

/** Connects to an MCP server at this URL and lists its tools. */
async function toolsAt(id: string, mcpUrl: string): Promise<{ status: number; text: string }> {
  await as(supertest(url).put('/namespaces/acme'));
  expect((await as(supertest(url).put(`/connect/acme/${id}`)).send({ mcpUrl })).status).toBe(201);
  return as(supertest(url).get(`/connect/acme/${id}/.tools`));
}

describe('with a certificate authority of its own in NODE_EXTRA_CA_CERTS, a service', () => {
  verifies('network:own-ca', 'uses a Postgres and a Redis whose certificates it issued', async () => {
    const { body } = await supertest(url).get('/ready');
    expect(body).toMatchObject({ status: 'ok', database: 'ok', queue: 'ok' });
  });

  verifies('network:own-ca', 'calls MCP servers inside the company without the proxy', async () => {
    const { status, text } = await toolsAt('inside', `https://127.0.0.1:${fronts.upstream.port}/mcp`);
    expect({ status, text }).toEqual({ status: 200, text: expect.stringContaining('"name":"echo"') });
    expect(proxy.asked).toEqual([]);
  });

  verifies(['network:own-ca', 'egress:proxy'], 'calls others through EGRESS_PROXY', async () => {
    const authority = `${OUTSIDE}:${fronts.upstream.port}`;
    expect((await toolsAt('outside', `https://${authority}/mcp`)).status).toBe(200);
    expect(new Set(proxy.asked.splice(0))).toEqual(new Set([authority]));
    proxy.refuseWith = 403;
    const refused = await toolsAt('refused', 'https://other.example.test/mcp');
    proxy.refuseWith = null;
    expect([refused.status, refused.text]).toEqual([502, expect.stringContaining('(EGRESS_PROXY) answered 403 for')]);
  });

  verifies(
    ['network:own-ca', 'egress:hosted:proxy'],
    'stores files in S3, and runs a module that leaves by both',
    async () => {
      const server = encodeURIComponent('acme/fetcher');
      await as(supertest(url).put(`/servers/${server}`)).send({});
      const published = await as(supertest(url).put(`/servers/${server}/releases`))
        .field('payload', JSON.stringify({ type: 'hosted' }))
        .attach('module', Buffer.from(FETCHER), 'module.js');
      expect([published.status, published.text]).toEqual([202, expect.any(String)]);
      const release = async () => (await as(supertest(url).get(`/servers/${server}/releases/latest`))).body;
      const done = await until(async () => {
        const now = await release();
        return ['SUCCESS', 'FAILURE', 'FAILURE_SCAN'].includes(now.status) && now;
      }, 'the release ends');
      expect([done.status, JSON.stringify(done.logs)]).toEqual(['SUCCESS', expect.any(String)]);
      proxy.asked.length = 0;
      const authority = `${OUTSIDE}:${fronts.upstream.port}`;
      const called = await as(supertest(done.mcpUrl).post(''))
        .set('accept', 'application/json, text/event-stream')
        .send({
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/call',
          params: { name: 'get', arguments: { url: `https://${authority}/` } },
        });
      expect([called.status, called.text]).toEqual([200, expect.stringMatching(/"text":"4\d\d /)]);
      expect(proxy.asked).toEqual([authority]);
    },
    SLOW_MS,
  );

  verifies('log:process', 'names its role, host and version in each log line, and in slipway_build_info', async () => {
    const page = await supertest(url).get('/metrics').set('authorization', `Bearer ${METRICS_TOKEN}`);
    const labels = `commit="unknown",node="${process.version}",role="api,worker,host"`;
    expect(parseMetrics(page.text).text).toContain(`slipway_build_info{version="${VERSION}",${labels}} 1\n`);
    const lines = service.logs();
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines)
      expect(line).toMatchObject({ role: 'api,worker,host', host: hostname(), version: VERSION });
    expect(service.output()).not.toContain(PROXY_PASSWORD);
    expect(service.output()).not.toContain(encodeURIComponent(PROXY_PASSWORD));
  });

  verifies('network:own-ca', 'does not start without it, and says that the certificate is the reason', async () => {
    const { NODE_EXTRA_CA_CERTS: _, REDIS_URL: __, ...others } = settings;
    const refused = runProgram('main.js', others);
    expect(await refused.ended).toBe(1);
    expect(refused.output()).toMatch(
      /^Slipway did not start\.\nThe database cannot be used \(.*certificate.*\): check DATABASE_URL and NODE_EXTRA_CA_CERTS\.$/m,
    );
    const missing = runProgram('main.js', { ...settings, NODE_EXTRA_CA_CERTS: '/nowhere/ca.pem' });
    expect(await missing.ended).toBe(1);
    expect(missing.output()).toContain('NODE_EXTRA_CA_CERTS must name a file');
  });
});
