/**
 * `npm run lab backup -- --build <folder> <new folder>` starts the built version in the folder of a checkout, this one by default,
 * creates data of every kind, and writes a backup with `slipway backup`, which `test/long/upgrade.e2e-spec.ts` restores. Data
 * whose routes a version lacks is skipped and listed.
 */
import { Blob } from 'node:buffer';
import { spawnSync } from 'node:child_process';
import { join, resolve } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { ZipFile } from 'yazl';
import { apiOf, echoModule, logIn, runBench, startEcho, startService, tempFolder } from '../bench/run.mjs';
import { fail, root } from './lib.mjs';

const { values, positionals } = parseArgs({
  options: { build: { type: 'string', default: root } },
  allowPositionals: true,
});
if (positionals.length !== 1) fail('Usage: npm run lab backup -- [--build <folder>] <new folder>');
const build = resolve(values.build);
const target = resolve(positionals[0]);

/** The operator's key, Ann's password, and what seals stored values: the test has the same. */
const operatorKey = `slipway_${'u'.repeat(43)}`;
const password = 'correct horse battery';
const settings = { BOOTSTRAP_API_KEY: operatorKey, ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 7).toString('base64')}` };

/** A transparent image of 1 × 1 pixel. */
const icon = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
);

function zipOf(files) {
  const zip = new ZipFile();
  for (const [path, content] of Object.entries(files)) zip.addBuffer(Buffer.from(content), path);
  zip.end();
  return buffer(zip.outputStream);
}

const skill = () =>
  zipOf({ 'SKILL.md': '---\nname: review\ndescription: Reviews a change.\n---\n\nRead the whole change.\n' });
const bundle = () =>
  zipOf({
    'manifest.json': JSON.stringify({
      manifest_version: '0.3',
      name: 'bundled',
      version: '1.0.0',
      description: 'Answers.',
      author: { name: 'Acme' },
      server: {
        type: 'node',
        entry_point: 'index.js',
        mcp_config: { command: 'node', args: ['${__dirname}/index.js'] },
      },
      tools: [{ name: 'echo', description: 'Answers.' }],
    }),
    'index.js': 'console.log("hello");\n',
  });

/** Runs a step that a version may lack. @returns null for one that it lacks */
async function ifKnown(about, step) {
  try {
    return await step();
  } catch (error) {
    if (!/: (404|405|400) /.test(error.message)) throw error;
    process.stdout.write(`skipped: ${about} (${error.message.slice(0, 120)})\n`);
    return null;
  }
}

/** Sends a file as a form. */
async function upload({ url, key }, method, route, fields) {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) {
    if (typeof value === 'string') form.set(name, value);
    else form.set(name, new Blob([value]), `${name}.bin`);
  }
  const response = await fetch(`${url}${route}`, { method, headers: { authorization: `Bearer ${key}` }, body: form });
  if (!response.ok) throw new Error(`${method} ${route}: ${response.status} ${(await response.text()).slice(0, 300)}`);
}

/** Opens an invitation link and sends its form. */
async function useInvitation(link, fields) {
  const page = await fetch(link);
  const cookie = page.headers
    .getSetCookie()
    .map((line) => line.split(';')[0])
    .join('; ');
  const token = /name="form-token" value="([^"]+)"/.exec(await page.text())[1];
  const body = new URLSearchParams({ 'form-token': token, ...fields, password, repeated: password });
  const response = await fetch(link, { method: 'POST', redirect: 'manual', headers: { cookie }, body });
  if (response.status !== 303) throw new Error(`POST /invite: ${response.status} ${await response.text()}`);
}

/** Calls a tool of a connection. */
const call = (by, path) => by.request('POST', `${path}/.tools/echo`, { message: 'stored' });

/** Accounts of each kind, with the ways in which people and programs sign in. */
async function addPeople(operator, as) {
  const account = (name, kind = 'user') => operator.request('POST', '/accounts', { name, kind });
  const people = {};
  for (const name of ['ann', 'bob', 'carol', 'dora']) {
    const { id } = await account(name);
    const { key } = await operator.request('POST', `/accounts/${id}/api-keys`, { name: 'laptop' });
    people[name] = { id, ...as(key) };
  }
  const { ann, bob, carol, dora } = people;
  const team = await account('team', 'organization');
  for (const [{ id }, role] of [
    [ann, 'owner'],
    [bob, 'editor'],
  ]) {
    const added = await operator.request('PUT', `/accounts/${team.id}/members/${id}`, { role });
    if (added.role !== role) throw new Error(`no member: ${JSON.stringify(added)}`);
  }
  await ifKnown('a second operator', () => operator.request('PATCH', `/accounts/${carol.id}`, { isOperator: true }));
  await operator.request('PATCH', `/accounts/${dora.id}`, { disabled: true });
  await operator.request('PATCH', `/accounts/${bob.id}/limits`, { limits: { connections: 50 } });
  await ann.request('POST', '/accounts/me/api-keys', {
    name: 'reader',
    scopes: ['read'],
    expiresAt: '2099-01-01T00:00:00Z',
  });
  await ann.request('POST', `/accounts/${team.id}/api-keys`, { name: 'ci' });
  const first = await operator.request('POST', `/accounts/${ann.id}/invitations`);
  await useInvitation(first.url, {});
  await operator.request('POST', `/accounts/${bob.id}/invitations`);
  await ifKnown('a new account by a link', async () => {
    const link = await ann.request('POST', `/accounts/${team.id}/members/invitations`, { role: 'member' });
    await useInvitation(link.url, { name: 'erin' });
    await ann.request('POST', `/accounts/${team.id}/members/invitations`, { role: 'guest' });
  });
  await ifKnown('the invitation of an account', () =>
    ann.request('PUT', `/accounts/${team.id}/members/${carol.id}`, { role: 'guest' }),
  );
  return { ...people, team };
}

/** Servers with releases of each type, and what belongs to them. */
async function addServers({ ann, bob, carol, team }, operator, echo) {
  await ann.request('PUT', '/namespaces/acme', { organizationId: team.id });
  await bob.request('PUT', '/namespaces/bob');
  await ann.publish('acme/weather', { type: 'external', upstreamUrl: echo.url });
  await ann.publish('acme/hosted', { type: 'hosted' }, echoModule('hosted'));
  await ann.publish('acme/hosted', { type: 'hosted' }, echoModule('hosted again'));
  await ann.request('PUT', '/servers/acme%2Fbundled');
  const payload = JSON.stringify({ type: 'stdio', runtime: 'node' });
  await upload(ann, 'PUT', '/servers/acme%2Fbundled/releases', { payload, bundle: await bundle() });
  await bob.publish('bob/private', { type: 'external', upstreamUrl: echo.url });
  const about = { displayName: 'Weather', description: 'Forecasts for every place.', homepage: 'https://example.com/' };
  await ann.request('PATCH', '/servers/acme%2Fweather', about);
  await ann.request('PATCH', '/servers/acme%2Fhosted/runtime', { logPayloads: true });
  await ann.request('PUT', '/servers/acme%2Fhosted/secrets', { name: 'TOKEN', value: 'sealed' });
  await upload(ann, 'PUT', '/servers/acme%2Fweather/icon', { file: icon });
  await operator.request('PUT', '/servers/acme%2Fweather/verified', { verified: true });
  await upload(ann, 'PUT', '/skills/acme/review/upload', { archive: await skill() });
  await bob.request('PATCH', '/servers/bob%2Fprivate', { visibility: 'private' });
  await ifKnown('a restricted server and a request for access', async () => {
    await ann.request('PATCH', '/servers/acme%2Fbundled', { visibility: 'restricted' });
    await carol.request('POST', '/servers/acme%2Fbundled/access-requests', { text: 'For the shop.' });
  });
  await bob.request('POST', '/servers/bob%2Fprivate/grants', { account: ann.id, level: 'call' });
  await ifKnown('a grant on a namespace', () =>
    bob.request('POST', '/namespaces/bob/grants', {
      account: carol.id,
      level: 'call',
      expiresAt: '2099-01-01T00:00:00Z',
    }),
  );
  await ifKnown('a suspension', () =>
    operator.request('PUT', '/servers/bob%2Fprivate/suspension', { reason: 'Under review.' }),
  );
}

/** Connections of each kind, each called once. */
async function addConnections({ ann, bob }, echo) {
  const connect = (id, body) => ann.request('PUT', `/connect/acme/${id}`, body);
  await connect('remote', {
    mcpUrl: echo.url,
    name: 'Remote',
    metadata: { userId: 'u-1' },
    headers: { 'X-Key': 'sealed' },
  });
  await connect('hosted', { server: 'acme/hosted' });
  const file = { path: 'server.ts', contents: echoModule('own') };
  await connect('module', { source: { kind: 'module', entrypoint: file.path, sourceFiles: [file] } });
  await connect('laptop', { transport: 'uplink' });
  const scenario = JSON.stringify({ tools: { echo: [{ result: 'pong' }] } });
  await connect('mock', { server: 'acme/weather', mock: { enabled: true, scenario } });
  await connect('recorded', { server: 'acme/weather' });
  await ann.request('PUT', '/connect/acme/recorded/recording', { enabled: true });
  for (const id of ['remote', 'hosted', 'module', 'mock', 'recorded']) await call(ann, `/connect/acme/${id}`);
  await connect('replayed', { server: 'acme/weather', mock: { enabled: true, scenario: 'replay:recorded' } });
  await call(ann, '/connect/acme/replayed');
  const tools = { allow: ['echo'] };
  await ann.request('POST', '/connect/acme/hosted/grants', { account: bob.id, level: 'call', tools });
  await ann.request('POST', '/connect/acme/mock/grants', { everyone: true, level: 'call' });
}

await runBench(async () => {
  const [folder, echo] = [tempFolder(), await startEcho()];
  const env = { ...settings, DATA_DIR: folder };
  const service = await startService({ env, folder: build });
  const as = (key) => ({ key, url: service.url, ...apiOf({ ...service, key }) });
  const operator = as(operatorKey);
  const people = await addPeople(operator, as);
  await addServers(people, operator, echo);
  await addConnections(people, echo);
  await ifKnown('the login of an MCP client', () => logIn(people.ann, `${service.url}/connect/acme/hosted/mcp`));
  // Logs are written within a second.
  for (let found = 0; found < 1;)
    found = (await people.ann.request('GET', '/connect/acme/hosted/logs')).invocations.length;
  const slipway = join(build, 'dist/src/cli/slipway.js');
  const backup = spawnSync(process.execPath, [slipway, 'backup', target], {
    env: { ...process.env, ...env },
    encoding: 'utf8',
  });
  process.stdout.write(backup.stdout + backup.stderr);
  if (backup.status !== 0) throw new Error('The backup failed.');
});
