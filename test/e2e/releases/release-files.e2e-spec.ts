import { describe, expect, it } from '@jest/globals';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import supertest from 'supertest';
import { checkModule } from '../../../src/hosting/hosted-module.js';
import { startApp, testAccount, testApp, uniqueName } from '../../support/app.js';
import { bundleOf, manifest, zipOf } from '../../support/releases/bundles.js';
import { createServer } from '../../support/factories.js';
import { startGuarded } from '../../support/special-upstreams/guarded-upstream.js';
import {
  errorOf,
  published,
  publishExternal,
  releaseIn,
  serverRow,
  type ReleaseBody,
} from '../../support/releases/releases.js';
import { until } from '../../support/until.js';
import { longIt } from '../../support/jest/globals.mjs';
import { verifies } from '../../support/verifies.js';

const stdio = { type: 'stdio', runtime: 'node' };

const app = testApp();
const owner = testAccount(app);
const stranger = testAccount(app);

/** Publishes files to a server and waits for the release's end. */
async function publishFiles(
  name: string,
  payload: object,
  files: Record<string, Buffer>,
  status: string,
): Promise<ReleaseBody> {
  const id = await published(app, owner, name, payload, files);
  return releaseIn(app, owner, name, id, status);
}

const messagesOf = ({ logs }: ReleaseBody) => logs.map(({ message }) => message);
const downloadOf = (name: string) => `/servers/${encodeURIComponent(name)}/download`;

describe('a module', () => {
  const outcomeOf = async (source: string, more: object = {}) =>
    publishFiles(
      await createServer(app, owner),
      { type: 'hosted', ...more },
      { module: Buffer.from(source) },
      'FAILURE',
    );

  it('is refused in its deploy stage where it cannot run, with line and column', async () => {
    const cases: [source: string, error: RegExp][] = [
      [
        'export default function () {\n  const a = ;\n}\n',
        /^The module has a syntax error at 2:13: Unexpected token\.$/,
      ],
      ['export const a = 1;\n', /^The module has no default export: /],
      ['module.exports = {};\n', /^The module is CommonJS: /],
      ['import x from "left-pad";\nexport default () => x;\n', /^The module imports "left-pad" \(1:\d+\)/],
    ];
    for (const [source, error] of cases) {
      const release = await outcomeOf(source);
      expect(release.logs.at(-1)).toMatchObject({ stage: 'deploy', level: 'error' });
      expect(errorOf(release)).toMatch(error);
    }
  });

  it('fails honestly where no process runs hosted code, and is kept', async () => {
    const without = await startApp({ ROLES: 'api,worker' });
    try {
      const account = await without.account();
      const name = await createServer(without, account);
      const module = Buffer.from('export const stateful = true;\nexport default function createServer() {}\n');
      const id = await published(without, account, name, { type: 'hosted' }, { module });
      const release = await releaseIn(without, account, name, id, 'FAILURE');
      expect(release.logs.at(-1)).toMatchObject({ stage: 'deploy', level: 'error' });
      expect(errorOf(release)).toMatch(/^No process of this service runs hosted code: .* is stored\. Run it elsewhere/);
    } finally {
      await without.close();
    }
  });

  longIt('is checked without delaying the service when it has 10 MB', async () => {
    const line = 'all.push(function f(a, b) { if (a > 1) return b.map((x) => x * 2); return "text"; });\n';
    const [start, size] = ['export default () => {}; const all = [];\n', 10 * 1024 * 1024];
    const module = Buffer.from(start + line.repeat((size - start.length) / line.length));
    const id = await published(app, owner, await createServer(app, owner), { type: 'hosted' }, { module });
    const stepOf = async (level: string) => {
      const sql = `SELECT 1 FROM release_logs WHERE release_id = $1 AND stage = 'deploy' AND level = $2`;
      return (await app.database.query<unknown[]>(sql, [id, level])).length > 0;
    };
    await until(() => stepOf('start'), 'the check starts');
    const before = process.cpuUsage();
    await until(() => stepOf('end'), 'the check ends');
    const { user } = process.cpuUsage(before);
    const alone = process.cpuUsage();
    checkModule(module.toString());
    // Checked in this process, it would take all of that and more.
    expect(user).toBeLessThan(process.cpuUsage(alone).user);
  });
});

describe('a bundle', () => {
  verifies('release:type:values', 'becomes current with the contents of its manifest', async () => {
    const name = await createServer(app, owner);
    const serverCard = {
      serverInfo: { name: 'claimed', version: '9' },
      tools: [{ name: 'forecast', inputSchema: { type: 'object', properties: { day: { type: 'string' } } } }],
      prompts: [{ name: 'ask', arguments: ['day'] }],
    };
    const release = await publishFiles(name, { ...stdio, serverCard }, { bundle: await bundleOf() }, 'SUCCESS');
    expect(release).toMatchObject({ type: 'stdio', upstreamUrl: null });
    expect(messagesOf(release)).toContain('Bundle weather 2.1.0, run by node');
    const { snapshot, description } = await serverRow(app, name);
    expect(description).toBe('Forecasts for tomorrow.');
    expect(snapshot).toMatchObject({
      type: 'stdio',
      runtime: 'node',
      serverInfo: { name: 'weather', version: '2.1.0', title: 'Weather' },
      // The manifest's tools have no schemas, the publisher's have.
      tools: serverCard.tools,
      prompts: [{ name: 'ask', arguments: [{ name: 'day' }] }],
      configSchema: { properties: { key: { type: 'string', title: 'Key' } }, required: ['key'] },
    });
    const detail = (await app.as(stranger).get(`/servers/${encodeURIComponent(name)}`)).body;
    expect(detail).toMatchObject({
      remote: false,
      deploymentUrl: null,
      connections: [{ type: 'stdio', runtime: 'node', bundleUrl: expect.stringContaining('/download?expires=') }],
      tools: [{ name: 'forecast' }],
      prompts: [{ name: 'ask', arguments: [{ name: 'day' }] }],
    });
  });

  verifies('server:detail:security-bundle', 'has no passed scan and no address when it was not run', async () => {
    const name = await createServer(app, owner);
    const release = await publishFiles(name, stdio, { bundle: await bundleOf() }, 'SUCCESS');
    expect(release).not.toHaveProperty('mcpUrl');
    expect(messagesOf(release).join('\n')).toContain('it was not run: only its manifest was checked');
    expect(messagesOf(release).join('\n')).not.toContain('security check passed');
    const detail = (await app.as(stranger).get(`/servers/${encodeURIComponent(name)}`)).body;
    expect(detail).toMatchObject({ security: null, deploymentUrl: null });
  });

  it('is described by its manifest where that has more than its publisher', async () => {
    const name = await createServer(app, owner);
    const tools = [{ name: 'exact', inputSchema: { type: 'object' } }];
    const serverCard = { serverInfo: { name: 'a', version: '1' }, tools: [{ name: 'other' }] };
    const payload = { ...stdio, runtime: 'python', serverCard };
    const release = await publishFiles(name, payload, { bundle: await bundleOf({ tools }) }, 'SUCCESS');
    expect(release.logs).toContainEqual(
      expect.objectContaining({
        stage: 'deploy',
        level: 'warning',
        message: 'It was published with the runtime python, but its manifest says node: the manifest counts.',
      }),
    );
    expect((await serverRow(app, name)).snapshot).toMatchObject({ runtime: 'node', tools });
  });

  it('is refused in its deploy stage with a readable line when it is broken or hostile', async () => {
    const good = await bundleOf();
    const climbing = await bundleOf({}, { 'aa/evil.js': 'x' });
    const replaced = Buffer.from(climbing.toString('latin1').replaceAll('aa/evil.js', '../evil.js'), 'latin1');
    const cases: [bundle: Buffer, error: RegExp][] = [
      [Buffer.from('no zip'), /zip/i],
      [good.subarray(0, good.length - 30), /zip|archive/i],
      [await zipOf({ 'server/index.js': 'x' }), /^manifest\.json is missing at the root/],
      [await zipOf({ 'manifest.json': '{' }), /^manifest\.json is not valid JSON/],
      [await bundleOf({ version: undefined }), /version must be a string/],
      [await bundleOf({ server: { ...manifest.server, entry_point: 'gone.js' } }), /names "gone\.js"/],
      [await bundleOf({}, { 'bomb.bin': Buffer.alloc(30 * 1024 * 1024) }), /bomb\.bin|unpack|ratio|times/],
      [replaced, /evil\.js|path/],
    ];
    const name = await createServer(app, owner);
    for (const [bundle, error] of cases) {
      const release = await publishFiles(name, stdio, { bundle }, 'FAILURE');
      expect(release.logs.at(-1)).toMatchObject({ stage: 'deploy', level: 'error' });
      expect(errorOf(release)).toMatch(error);
      expect(errorOf(release)).not.toMatch(/Something failed|\/tmp\/|at \w+ \(/);
    }
  });
});

describe('the download of a bundle', () => {
  it('is the bundle byte for byte, for anybody with a key', async () => {
    const name = await createServer(app, owner);
    const bundle = await bundleOf({ version: '1.0.0' });
    await publishFiles(name, stdio, { bundle }, 'SUCCESS');
    const response = await app.as(stranger).get(downloadOf(name)).buffer(true).parse(bytesOf);
    expect(response.status).toBe(200);
    expect(bundle.equals(response.body as Buffer)).toBe(true);
    expect(response.headers).toMatchObject({
      'content-type': 'application/zip',
      'content-length': String(bundle.length),
      'content-disposition': `attachment; filename="${name.replace('/', '--')}.mcpb"`,
      'last-modified': expect.stringMatching(/GMT$/),
      etag: expect.stringMatching(/^"[0-9a-f]{64}"$/),
    });
    const { etag } = response.headers;
    for (const known of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
      const again = await app.as(stranger).get(downloadOf(name)).set('if-none-match', known);
      expect([known, again.status, again.text, again.headers.etag]).toEqual([known, 304, '', etag]);
    }
    expect((await app.as(stranger).get(downloadOf(name)).set('if-none-match', '"x"')).status).toBe(200);
    const head = await supertest(app.url).head(downloadOf(name)).set('authorization', `Bearer ${stranger.key}`);
    expect([head.status, head.headers['content-length'], head.headers.etag]).toEqual([
      200,
      String(bundle.length),
      etag,
    ]);
  });

  it('is that of the current release, or of the newest that has one', async () => {
    const name = await createServer(app, owner);
    const [first, second] = [await bundleOf({ version: '1.0.0' }), await bundleOf({ version: '2.0.0' })];
    const { id } = await publishFiles(name, stdio, { bundle: first }, 'SUCCESS');
    await publishFiles(name, stdio, { bundle: second }, 'SUCCESS');
    await publishFiles(name, stdio, { bundle: Buffer.from('x') }, 'FAILURE');
    const download = async () => (await app.as(owner).get(downloadOf(name)).buffer(true).parse(bytesOf)).body as Buffer;
    expect(second.equals(await download())).toBe(true);
    await app.as(owner).post(`/servers/${encodeURIComponent(name)}/releases/${id}/promote`);
    expect(first.equals(await download())).toBe(true);
    const upstream = await startGuarded();
    await publishExternal(app, owner, name, { upstreamUrl: upstream.url });
    expect(second.equals(await download())).toBe(true);
    await upstream.close();
  });

  it('is not found where there is none', async () => {
    const name = await createServer(app, owner);
    const missing = { error: 'Bundle not found: the server has no successful release of type stdio' };
    expect((await app.as(owner).get(downloadOf(name))).body).toEqual(missing);
    await publishFiles(name, stdio, { bundle: Buffer.from('x') }, 'FAILURE');
    const response = await app.as(owner).get(downloadOf(name));
    expect([response.status, response.body]).toEqual([404, missing]);
    const gone = await app.as(owner).get(downloadOf(`${name}-${uniqueName()}`));
    expect([gone.status, gone.body]).toEqual([404, expect.objectContaining({ error: 'Server not found' })]);
  });

  it('needs a key, a signed link or public reads', async () => {
    const name = await createServer(app, owner);
    await publishFiles(name, stdio, { bundle: await bundleOf() }, 'SUCCESS');
    expect((await app.as().get(downloadOf(name))).status).toBe(401);
    const detail = (await app.as(owner).get(`/servers/${encodeURIComponent(name)}`)).body;
    const link = new URL(detail.connections[0].bundleUrl as string);
    expect((await app.as().get(link.pathname + link.search)).status).toBe(200);
    const other = await createServer(app, owner);
    for (const path of [
      `${link.pathname}${link.search.slice(0, -2)}xx`,
      `${downloadOf(other)}${link.search}`,
      `${link.pathname}${link.search.replace(/expires=\d/, 'expires=9')}`,
      `${link.pathname}?signature=x`,
    ]) {
      const response = await app.as().get(path);
      expect([path, response.status]).toEqual([path, 403]);
    }
    const open = await app.sibling({ PUBLIC_READS: 'true' });
    expect((await open.as().get(downloadOf(name))).status).toBe(200);
    await open.close();
  });

  it('answers a documented error when the file is lost', async () => {
    const name = await createServer(app, owner);
    await publishFiles(name, stdio, { bundle: await bundleOf({ version: '0.0.7' }) }, 'SUCCESS');
    const { etag } = (await app.as(owner).get(downloadOf(name))).headers as { etag: string };
    const hash = etag.slice(1, -1);
    await rm(join(app.env.dataDir, 'blobs', hash.slice(0, 2), hash));
    const response = await app.as(owner).get(downloadOf(name));
    expect(response.status).toBe(500);
    expect(response.headers['content-type']).toMatch(/^application\/json/);
    expect(response.headers).not.toHaveProperty('etag', etag);
    expect(Object.keys(response.body as object)).toEqual(['error']);
  });
});

/** Reads an answer as bytes. */
function bytesOf(response: supertest.Response, done: (error: Error | null, body: Buffer) => void): void {
  const chunks: Buffer[] = [];
  const stream = response as unknown as NodeJS.ReadableStream;
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  stream.on('end', () => done(null, Buffer.concat(chunks)));
}
