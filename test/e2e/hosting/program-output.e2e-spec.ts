import { beforeAll, describe, expect, it } from '@jest/globals';
import { testAccount, testApp } from '../../support/app.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { publishHosted } from '../../support/hosting/hosted-releases.js';
import { ask } from '../../support/mcp/mcp-calls.js';
import { bundleOf } from '../../support/releases/bundles.js';
import { published, releaseIn } from '../../support/releases/releases.js';
import { until } from '../../support/until.js';

const SECRET = 'sk live/0a1b"2c3d+é\nsecond line of 4e5f';

/** A part of every spelling of the secret that the programs print. */
const LEAK = /sk.{1,3}live|0a1b|2c3d|4e5f|c2sgbGl2|736b206c/;

/** Random ids may have digits of the secret. */
const withoutIds = (text: string) => text.replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '');

/** What no caller reads: the secret, a stack, and the word that stands for all other output. */
const WITHHELD = new RegExp(`${LEAK.source}|the private words|index\\.js|node:internal|\\n? +at `);

/** Ways of a program to die during a call. */
const DEATHS: Record<string, string> = {
  url: `console.error('GET https://u:' + SECRET + '@x/ failed: the private words'); process.exit(1)`,
  config: `console.error('the private words: ' + JSON.stringify({ a: { token: SECRET } })); process.exit(1)`,
  encoded: `console.error('the private words ?k=' + encodeURIComponent(SECRET) + '&' + new URLSearchParams({ k: SECRET })); process.exit(2)`,
  base64: `console.error('the private words ' + Buffer.from('user:' + SECRET).toString('base64') + ' ' + Buffer.from(SECRET).toString('hex')); process.exit(2)`,
  inspected: `console.error('the private words', { nested: { list: [SECRET] } }); process.exit(3)`,
  long: `console.error('the private words ' + 'x'.repeat(8160) + SECRET); process.exit(3)`,
  thrown: `setImmediate(() => { throw new Error('the private words: bad token ' + SECRET); })`,
  rejected: `void Promise.reject(new Error('the private words ' + SECRET))`,
  printed: `process.stdout.write('the private words ' + SECRET + '\\n'); process.exit(4)`,
  killed: `console.error('the private words ' + SECRET); process.kill(process.pid, 'SIGKILL')`,
};

/** MCP over stdio; each tool dies in its way, and with \`die-at-start\` the program itself. */
const PROGRAM = `
const SECRET = process.env.API_TOKEN ?? 'none';
if (process.env.MODE === 'broken') { console.error('the private words ' + SECRET); throw new Error('the private words: no ' + SECRET); }
const deaths = { ${Object.entries(DEATHS)
  .map(([name, code]) => `${name}: () => { ${code} }`)
  .join(', ')} };
let text = '';
process.stdin.on('data', (chunk) => {
  text += chunk;
  for (let at; (at = text.indexOf('\\n')) >= 0; text = text.slice(at + 1)) {
    const { id, method, params } = JSON.parse(text.slice(0, at));
    const answer = (result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n');
    if (method === 'initialize') answer({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'd', version: '1' } });
    else if (method === 'tools/list') answer({ tools: Object.keys(deaths).map((name) => ({ name, inputSchema: { type: 'object' } })) });
    else if (method === 'tools/call') deaths[params.name]();
    else if (id !== undefined) answer({});
  }
});`;

/** A module that can be broken by a secret, so that it no longer loads. */
const MODULE = `
import { env } from 'cloudflare:workers';
if (env.MODE === 'broken') {
  console.error('the private words ' + env.API_TOKEN);
  throw new Error('the private words: no ' + JSON.stringify(env.API_TOKEN));
}
export default {
  async fetch(request, env) {
    const { id, method } = await request.json();
    if (id === undefined) return new Response(null, { status: 202 });
    const answer = (result) => Response.json({ jsonrpc: '2.0', id, result });
    if (method === 'initialize') return answer({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'm', version: '1' } });
    if (method === 'tools/list') return answer({ tools: [{ name: 'thrown', inputSchema: { type: 'object' } }] });
    console.error('the private words', { token: env.API_TOKEN });
    throw new Error('the private words: bad token ' + env.API_TOKEN);
  },
};`;

const app = testApp({ RUNTIME_BUNDLES: 'isolated' });
const owner = testAccount(app);
const guest = testAccount(app);

const pathOf = (server: string) => `/servers/${encodeURIComponent(server)}`;
const setSecret = (server: string, name: string, value: string) =>
  app.as(owner).put(`${pathOf(server)}/secrets`, { name, value });

/** Publishes the program with its secret for everybody, and connects it for the guest. */
async function open(server: string) {
  expect((await app.as(owner).patch(pathOf(server), { visibility: 'public', confirmSecrets: true })).status).toBe(200);
  const namespace = await createNamespace(app, owner);
  const { path } = await createConnection(app, owner, { server }, { namespace });
  expect((await app.as(owner).post(`${path}/grants`, { account: guest.id, level: 'call' })).status).toBe(201);
  return { server, run: `${app.url}/run/${server.replace('/', '--')}`, path, namespace };
}

type Opened = Awaited<ReturnType<typeof open>>;

/** Everything that a guest can read of one call: by REST, and over MCP at three addresses. */
async function readAsGuest({ run, path, namespace }: Opened, name: string): Promise<string[]> {
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: {} } };
  const mine = { authorization: `Bearer ${guest.key}` };
  const id = path.split('/').at(-1) ?? '';
  const union = { ...call, params: { ...call.params, name: `${id}__${name}` } };
  const rest = await app.as(guest).post(`${path}/.tools/${name}`, {});
  expect(rest.status).toBeGreaterThanOrEqual(400);
  const answers = [
    await ask(run, call, mine),
    await ask(`${app.url}${path}/mcp`, call, mine),
    await ask(`${app.url}/connect/${namespace}/.mcp`, union, mine),
  ];
  const status = await app.as(guest).get(path);
  const denied = await app.as(guest).get(`${path}/diagnosis`);
  const log = await app.as(guest).get(`${path}/logs`);
  return [rest, ...answers, status, denied, log].map(({ status: code, body }) => `${code} ${JSON.stringify(body)}`);
}

async function logOf(server: string): Promise<string> {
  return JSON.stringify((await app.as(owner).get(`${pathOf(server)}/logs?limit=100`)).body);
}

describe('the output of a bundle that dies', () => {
  let bundle: Opened;

  beforeAll(async () => {
    const server = await createServer(app, owner);
    await setSecret(server, 'API_TOKEN', SECRET);
    const file = await bundleOf({ tools: [], user_config: {} }, { 'server/index.js': PROGRAM });
    const id = await published(app, owner, server, { type: 'stdio', runtime: 'node' }, { bundle: file });
    await releaseIn(app, owner, server, id, 'SUCCESS');
    bundle = await open(server);
  });

  it('goes to no caller, and to the log of its owner without the secret', async () => {
    for (const name of Object.keys(DEATHS)) {
      const texts = await readAsGuest(bundle, name);
      expect(texts.filter((text) => WITHHELD.test(text))).toEqual([]);
      expect(`${name} ${texts[1]}`).toMatch(/exit code|SIG/);
    }
    await until(
      async () => (await logOf(bundle.server)).split('the private words').length > 10,
      'the output is logged',
    );
    const log = await logOf(bundle.server);
    expect(log).toContain('ended before it answered');
    expect(withoutIds(log)).not.toMatch(LEAK);
  });

  it('fails a release with the words and without the secret, and a start without either', async () => {
    await setSecret(bundle.server, 'MODE', 'broken');
    const texts = await readAsGuest(bundle, 'url');
    for (const text of texts) expect(text).not.toMatch(WITHHELD);
    const diagnosis = JSON.stringify((await app.as(owner).get(`${bundle.path}/diagnosis`)).body);
    expect(diagnosis).toContain('exit code 1');
    expect(withoutIds(diagnosis)).not.toMatch(LEAK);
    const file = await bundleOf({ tools: [], user_config: {} }, { 'server/index.js': `${PROGRAM}//` });
    const id = await published(app, owner, bundle.server, { type: 'stdio', runtime: 'node' }, { bundle: file });
    const { logs } = await releaseIn(app, owner, bundle.server, id, 'FAILURE_SCAN');
    expect(JSON.stringify(logs)).toContain('the private words');
    expect(withoutIds(JSON.stringify(logs))).not.toMatch(LEAK);
    expect(JSON.stringify((await app.as(guest).get(`${pathOf(bundle.server)}/releases`)).body)).not.toMatch(WITHHELD);
  });
});

describe('the output of a module that fails', () => {
  it('goes to no caller, and to the log of its owner without the secret', async () => {
    const server = await createServer(app, owner);
    await setSecret(server, 'API_TOKEN', SECRET);
    await publishHosted(app, owner, MODULE, { name: server });
    const module = await open(server);
    for (const text of await readAsGuest(module, 'thrown')) expect(text).not.toMatch(WITHHELD);
    await setSecret(server, 'MODE', 'broken');
    await until(async () => {
      const texts = await readAsGuest(module, 'thrown');
      for (const text of texts) expect(text).not.toMatch(WITHHELD);
      return texts.some((text) => text.includes('could not be started'));
    }, 'it no longer starts');
    await until(
      async () => /no (?!.*bad token).*redacted|private words: no/.test(await logOf(server)),
      'the reason of the start is logged',
    );
    expect(withoutIds(await logOf(server))).not.toMatch(LEAK);
    const diagnosis = JSON.stringify((await app.as(owner).get(`${module.path}/diagnosis`)).body);
    expect(withoutIds(diagnosis)).not.toMatch(LEAK);
  });
});
