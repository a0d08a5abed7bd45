import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { testAccount, testApp } from '../../support/app.js';
import { createServer } from '../../support/factories.js';
import { startGuarded, type GuardedUpstream } from '../../support/special-upstreams/guarded-upstream.js';
import {
  publish,
  published,
  publishExternal,
  type ReleaseBody,
  releaseIn,
  releaseRow,
  releasesPath,
} from '../../support/releases/releases.js';
import { until } from '../../support/until.js';
import { listen, shut } from '../../support/upstream/upstream-net.js';
import { verifies } from '../../support/verifies.js';

const secret = 'canary-scan-credential-4711';
const configSchema = {
  type: 'object',
  properties: {
    region: { type: 'string', 'x-from': { query: 'region' }, 'x-to': { query: 'area' } },
    token: { type: 'string', 'x-from': { header: 'x-token' }, 'x-to': { header: 'X-Upstream-Token' } },
  },
};

const app = testApp({ LOG_LEVEL: 'trace', LOG_FORMAT: 'json' });
const owner = testAccount(app);
let upstream: GuardedUpstream;
let written = '';
const write = process.stdout.write.bind(process.stdout);

beforeAll(async () => {
  // The log of a process in a test goes to its own output.
  process.stdout.write = (chunk: string | Uint8Array, ...more: never[]) => {
    written += String(chunk);
    return String(chunk).startsWith('{') ? true : write(chunk, ...more);
  };
  upstream = await startGuarded();
});
afterAll(async () => {
  process.stdout.write = write;
});

/** Every table of the database, jobs too, that holds a text anywhere. */
async function tablesWith(text: string): Promise<string[]> {
  const tables = await app.database.query<{ name: string }[]>(
    `SELECT format('%I.%I', table_schema, table_name) AS name FROM information_schema.tables
      WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')`,
  );
  const found: string[] = [];
  for (const { name } of tables) {
    const rows = await app.database.query<unknown[]>(`SELECT 1 FROM ${name} t WHERE t::text LIKE '%' || $1 || '%'`, [
      text,
    ]);
    if (rows.length > 0) found.push(name);
  }
  return found;
}

/** Starts a server that answers every request by hand. */
async function startServer(answer: (req: IncomingMessage, res: ServerResponse) => unknown): Promise<[string, Server]> {
  const server = createHttpServer((req, res) => void answer(req, res));
  return [`http://127.0.0.1:${await listen(server)}/mcp`, server];
}

describe('scan credentials', () => {
  it('reach the upstream as the config schema defines, or otherwise as headers', async () => {
    const name = await createServer(app, owner);
    const scanCredentials = { region: `${secret} &=`, token: secret, 'X-Api-Key': secret };
    await publishExternal(app, owner, name, { upstreamUrl: `${upstream.url}?v=2`, configSchema, scanCredentials });
    expect(upstream.seen.length).toBeGreaterThan(2);
    for (const { url, headers } of upstream.seen) {
      const { searchParams } = new URL(url, upstream.url);
      expect(Object.fromEntries(searchParams)).toEqual({ v: '2', area: `${secret} &=` });
      expect(headers).toMatchObject({ 'x-upstream-token': secret, 'x-api-key': secret });
    }
  });

  it('may be null, which means none', async () => {
    const payload = { type: 'external', upstreamUrl: upstream.url, scanCredentials: null };
    const name = await createServer(app, owner);
    const { deploymentId } = (await publish(app, owner, name, payload)).body as { deploymentId: string };
    await releaseIn(app, owner, name, deploymentId, 'SUCCESS');
  });

  verifies(
    'scan-credentials:query',
    'travel in the query without x-to, and publishing and the failure say so',
    async () => {
      const name = await createServer(app, owner);
      const closed = await startGuarded({ wants: 'bare', key: ['x-api-key', secret] });
      const properties = { region: { type: 'string', 'x-to': { query: 'area' } }, apiKey: { type: 'string' } };
      const payload = {
        type: 'external',
        upstreamUrl: closed.url,
        configSchema: { type: 'object', properties },
        scanCredentials: { apiKey: secret, region: 'north' },
      };
      const answer = await publish(app, owner, name, payload);
      const { deploymentId: id, warnings } = answer.body as { deploymentId: string; warnings: string[] };
      expect(warnings).toEqual([
        'scanCredentials "apiKey" is sent in the query, because its property has no x-to. ' +
          'If the server reads a header, add "x-to": {"header": "<name>"}.',
      ]);
      const errorIn = ({ logs }: Pick<ReleaseBody, 'logs'>) => logs.find(({ level }) => level === 'error')?.message;
      const note = / The scan sent "apiKey" in the query, because its property in the configSchema has no x-to\.$/;
      expect(errorIn(await releaseIn(app, owner, name, id, 'FAILURE'))).toMatch(note);
      closed.behave({ wants: 'forbidden' });
      expect(errorIn(await publishExternal(app, owner, name, payload, 'FAILURE'))).toMatch(note);
      await closed.close();
    },
  );

  it('are sealed while the release needs them, removed when it is final, and seen nowhere', async () => {
    const name = await createServer(app, owner);
    const slow = await startGuarded({ holds: true });
    const scanCredentials = { 'x-api-key': secret };
    const payload = { type: 'external', upstreamUrl: slow.url, scanCredentials };
    const response = await publish(app, owner, name, payload);
    expect(response.status).toBe(202);
    const { deploymentId: id } = response.body as { deploymentId: string };
    await until(() => slow.held() > 0, 'the scan waits');
    expect((await releaseRow(app, id)).sealed_scan_credentials).toMatch(/^\S{40,}$/);
    expect(await tablesWith(secret)).toEqual([]);
    slow.letThrough();
    const release = await releaseIn(app, owner, name, id, 'SUCCESS');
    expect((await releaseRow(app, id)).sealed_scan_credentials).toBeNull();
    const list = await app.as(owner).get(releasesPath(name));
    const stream = await app.as(owner).get(releasesPath(name, `/${id}/stream`));
    const server = await app.as(owner).get(`/servers/${encodeURIComponent(name)}`);
    const shown = JSON.stringify([release, response.body, list.body, stream.text, server.body]);
    expect(shown).not.toContain(secret);
    expect(await tablesWith(secret)).toEqual([]);
    expect(written).toContain('"level"');
    expect(written).not.toContain(secret);
    await slow.close();
  });

  it('are removed when the release fails or is cancelled', async () => {
    const name = await createServer(app, owner);
    const slow = await startGuarded({ holds: true });
    const scanCredentials = { 'x-api-key': secret };
    const cancelled = await published(app, owner, name, { type: 'external', upstreamUrl: slow.url, scanCredentials });
    const failing = { upstreamUrl: `${upstream.origin}/nothing`, scanCredentials };
    const failed = await publishExternal(app, owner, name, failing, 'FAILURE');
    await releaseIn(app, owner, name, cancelled, 'CANCELLED');
    for (const id of [cancelled, failed.id]) expect((await releaseRow(app, id)).sealed_scan_credentials).toBeNull();
    await slow.close();
  });

  it('are not shown when the upstream repeats them in its response', async () => {
    const name = await createServer(app, owner);
    const scanCredentials = { 'x-api-key': secret, region: secret };
    const answers: ((req: IncomingMessage, res: ServerResponse) => unknown)[] = [
      (req, res) => res.writeHead(302, { location: `/login?back=${encodeURIComponent(req.url ?? '')}` }).end(),
      (req, res) => {
        const error = { code: -32600, message: `Unknown key ${req.headers['x-api-key'] as string}` };
        res
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ jsonrpc: '2.0', id: 1, error }));
      },
      (req, res) => {
        const serverInfo = { name: `for ${req.headers['x-api-key'] as string}`, version: '1' };
        const result = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo };
        res
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ jsonrpc: '2.0', id: 1, result }));
      },
    ];
    for (const answer of answers) {
      const [upstreamUrl, server] = await startServer(answer);
      const payload = { type: 'external', upstreamUrl, configSchema, scanCredentials };
      const id = await published(app, owner, name, payload);
      const release = await releaseIn(app, owner, name, id, 'FAILURE');
      expect(release.logs.at(-1)).toMatchObject({ stage: 'scan', level: 'error' });
      expect(JSON.stringify(release)).not.toContain(secret);
      await shut(server);
    }
    expect(await tablesWith(secret)).toEqual([]);
    expect(written).not.toContain(secret);
  });

  it('are refused in a sentence that does not repeat them when they cannot be sent', async () => {
    const name = await createServer(app, owner);
    const cases = [
      { 'x-api-key': `${secret}\r\nx-other: 1` },
      { 'x-api-key': `${secret}ü€` },
      { 'not a header': secret },
      { host: secret },
      { 'content-length': secret },
      { 'transfer-encoding': secret },
      { 'mcp-session-id': secret },
      { 'x-api-key': '' },
    ];
    for (const scanCredentials of cases) {
      const response = await publish(app, owner, name, {
        type: 'external',
        upstreamUrl: upstream.url,
        scanCredentials,
      });
      const [key] = Object.keys(scanCredentials);
      expect([key, response.status, response.body]).toEqual([
        key,
        400,
        { error: expect.stringMatching(/^scanCredentials.* must be /) },
      ]);
      expect(response.text).not.toContain(secret);
    }
  });
});
