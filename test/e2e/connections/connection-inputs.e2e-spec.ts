import { request } from 'node:http';
import { beforeAll, beforeEach, describe, expect } from '@jest/globals';
import { startApp, type TestAccount, type TestApp } from '../../support/app.js';
import { mcp, toolCall } from '../../support/mcp/calls.js';
import { personAt } from '../../support/people/credentials.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { startGuarded } from '../../support/special-upstreams/guarded-upstream.js';
import { newPerson, type Person } from '../../support/people/person.js';
import { releaseServer } from '../../support/database/server-rows.js';
import { images, uploadIcon } from '../../support/releases/icons.js';
import { publishExternal } from '../../support/releases/releases.js';
import { until } from '../../support/until.js';
import { freePort } from '../../support/upstream/upstream-net.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { verifies } from '../../support/verifies.js';

const SECRET = 'hunter2-and-more';

const configSchema = {
  type: 'object',
  required: ['apiKey', 'region'],
  properties: {
    apiKey: {
      type: 'string',
      title: 'API key',
      description: 'From your <account> page.',
      'x-from': { header: 'X-Given-Key' },
      'x-to': { header: 'X-Key' },
    },
    region: { type: 'string', enum: ['eu', 'us'], 'x-from': { query: 'region' }, 'x-to': { query: 'r' } },
    days: { type: 'integer', default: 3 },
  },
};

let app: TestApp;
let owner: TestAccount;
let upstream: Upstream;
let namespace: string;
let server: string;
let person: Person;

beforeAll(async () => {
  [app, upstream] = await Promise.all([
    startApp({ PORT: String(await freePort()), SETUP_RETURN_ORIGINS: 'https://app.example' }),
    startUpstream({ requireHeaders: { 'x-key': SECRET } }),
  ]);
  owner = await app.account();
  namespace = await createNamespace(app, owner);
  server = await createServer(app, owner);
  await releaseServer(app, server, { upstreamUrl: upstream.url, configSchema });
});

beforeEach(() => {
  person = personAt(app);
});

interface Body {
  mcpUrl: string;
  status: { state: string; reason: string; message?: string; setupUrl?: string; missing?: object; http?: object };
}

async function connect(body: object = { server }): Promise<{ path: string; body: Body; connectionId: string }> {
  const made = await createConnection(app, owner, body as { mcpUrl: string }, { namespace });
  return { ...made, body: made.body as unknown as Body };
}

async function read(path: string): Promise<Body> {
  return (await app.as(owner).get(path)).body as Body;
}

async function put(path: string, body: object): Promise<Body & { code: number }> {
  const answer = await app.as(owner).put(path, body);
  return { ...(answer.body as Body), code: answer.status };
}

const echo = (path: string) => app.as(owner).post(`${path}/.tools/echo`, { message: 'hi' });

/** Values of the upstream's last request. */
function lastSeen(): { key: unknown; query: Record<string, string> } {
  const last = upstream.requests.at(-1);
  const { searchParams } = new URL(last?.path ?? '/', 'http://x');
  return { key: last?.headers['x-key'], query: Object.fromEntries(searchParams) };
}

/** The page of a connection, as a person has it in front of them. */
async function opened(path: string): Promise<string> {
  const { setupUrl = '' } = (await read(path)).status;
  expect(await person.open(setupUrl)).toMatchObject({ status: 200 });
  return setupUrl;
}

describe('a connection to a server that requires values', () => {
  verifies(
    ['connection:state:input-required', 'connection:state:input-supplied', 'connection:inputs:mapped'],
    'names the missing values, is connected once a PUT supplies them, and sends them where the server expects them',
    async () => {
      const dialled = upstream.requests.length;
      const { path, body } = await connect();
      expect(body.status).toMatchObject({
        state: 'input_required',
        reason: 'missing_values',
        http: {
          headers: { 'X-Given-Key': { label: 'API key', description: 'From your <account> page.', required: true } },
          query: { region: { label: 'region', required: true }, days: { label: 'days', required: false } },
        },
        missing: { headers: ['X-Given-Key'], query: ['region'] },
        setupUrl: expect.stringContaining('/setup/connections/'),
      });
      expect(upstream.requests).toHaveLength(dialled);

      const some = await put(path, { headers: { 'X-Given-Key': SECRET } });
      expect([some.code, some.status.missing]).toEqual([200, { headers: [], query: ['region'] }]);
      const all = await put(path, { mcpUrl: `${some.mcpUrl}?region=eu` });
      expect([all.code, all.status.state]).toEqual([200, 'connected']);
      expect((await echo(path)).status).toBe(200);
      expect(lastSeen()).toEqual({ key: SECRET, query: { r: 'eu', days: '3' } });
      expect(all.mcpUrl).not.toContain('region');
      for (const text of [JSON.stringify(all), JSON.stringify(await read(path))]) expect(text).not.toContain(SECRET);
      const stored = await app.database.query('SELECT c::text AS row FROM connections c');
      expect(JSON.stringify(stored)).not.toContain(SECRET);
    },
  );

  verifies('connection:state:input-supplied', 'is connected immediately when they are given up front', async () => {
    const { mcpUrl } = (await connect()).body;
    const { body } = await connect({ mcpUrl: `${mcpUrl}?region=us`, headers: { 'X-Given-Key': SECRET } });
    expect(body.status.state).toBe('connected');
    expect(body.mcpUrl).toBe(mcpUrl);
  });

  verifies('connection:inputs:kept', 'keeps its query values over a PUT that does not name them', async () => {
    const { path, body } = await connect();
    await put(path, { mcpUrl: `${body.mcpUrl}?region=eu&days=5`, headers: { 'X-Given-Key': SECRET } });
    expect((await put(path, { mcpUrl: body.mcpUrl, name: 'renamed' })).status.state).toBe('connected');
    await put(path, { mcpUrl: `${body.mcpUrl}?days=7` });
    await echo(path);
    expect(lastSeen().query).toEqual({ r: 'eu', days: '7' });
    const without = await put(path, { mcpUrl: `${body.mcpUrl}?region=` });
    expect(without.status).toMatchObject({ state: 'input_required', missing: { headers: [], query: ['region'] } });
  });

  verifies(
    'connection:refusal:words',
    'reports missing values and the setup URL to callers over REST and MCP',
    async () => {
      const { path, body } = await connect();
      const { setupUrl = '' } = body.status;
      const answer = await echo(path);
      expect([answer.status, answer.headers['x-should-retry']]).toEqual([409, 'false']);
      expect(answer.body).toEqual({
        error: 'input_required',
        message: `Input required: API key (header "X-Given-Key"), query "region". PUT the connection with them, or open ${setupUrl} in a browser.`,
      });
      const called = await mcp(app, owner, path, toolCall(7, 'echo', { message: 'hi' }));
      expect(called.body).toMatchObject({
        id: 7,
        error: {
          code: -32002,
          message: 'Input required',
          data: { setupUrl, missing: { headers: ['X-Given-Key'], query: ['region'] }, http: expect.any(Object) },
        },
      });
      // The link is told, and kept nowhere.
      const log = await until(async () => {
        const { body: read } = await app.as(owner).get(`${path}/logs`);
        return (read as { total: number }).total >= 2 && JSON.stringify(read);
      }, 'both calls stand in the log');
      expect(log).toContain('Input required');
      expect(log).not.toContain('signature');
    },
  );

  verifies('connection:state:input-required', 'names an invalid value without repeating it', async () => {
    const { path, body } = await connect();
    const wrong = await put(path, { mcpUrl: `${body.mcpUrl}?region=mars`, headers: { 'X-Given-Key': SECRET } });
    expect(wrong.status).toMatchObject({
      state: 'input_required',
      reason: 'invalid_values',
      message: 'The query "region" must be one of the values its schema lists.',
      missing: { headers: [], query: ['region'] },
    });
    expect(JSON.stringify(wrong)).not.toContain('mars');
  });

  verifies('connection:put:input-url', 'takes another query of its own address, and no other address', async () => {
    const { path, body } = await connect();
    expect(await put(path, { mcpUrl: `${body.mcpUrl}?region=eu` })).toMatchObject({ code: 200 });
    expect(await put(path, { mcpUrl: `${upstream.url}?region=eu` })).toMatchObject({ code: 409, error: 'conflict' });
    const other = await createServer(app, owner);
    await releaseServer(app, other, { upstreamUrl: upstream.url });
    expect(await put(path, { server: other })).toMatchObject({ code: 409 });
    expect(await put(path, { transport: 'uplink' })).toMatchObject({ code: 409 });
  });

  verifies('connection:inputs:kept', 'are at most 8 KB in total, over any number of PUTs', async () => {
    const { path, body } = await connect();
    const codes: number[] = [];
    for (let part = 0; part < 6; part += 1) {
      codes.push((await put(path, { mcpUrl: `${body.mcpUrl}?n${part}=${'x'.repeat(1_800)}` })).code);
    }
    expect(codes).toEqual([200, 200, 200, 200, 400, 400]);
  });

  verifies('connection:put:input-url', 'takes another query for its URL only while values are missing', async () => {
    const open = await startUpstream();
    const { path, connectionId } = await connect({ mcpUrl: open.url });
    expect(await put(path, { mcpUrl: `${open.url}?a=1` })).toMatchObject({ code: 409, error: 'conflict' });
    await app.database.query(
      `UPDATE connections SET status_state = 'input_required', status_reason = 'missing_values', status_seen_at = now()
        WHERE connection_id = $1`,
      [connectionId],
    );
    expect(await put(path, { mcpUrl: `${open.url}/other?a=1` })).toMatchObject({ code: 409 });
    const taken = await put(path, { mcpUrl: `${open.url}?a=1` });
    expect(taken).toMatchObject({ code: 200, mcpUrl: `${open.url}?a=***`, status: { state: 'connected' } });
    await open.close();
  });
});

describe('the form of a setup link', () => {
  verifies(
    ['connection:setup:form', 'connection:setup:link'],
    'shows the error next to each field, repeats no secret, and stores nothing before all are valid',
    async () => {
      const { path } = await connect();
      const link = await opened(path);
      const refused = await person.press(link, undefined, { 'query.region': 'mars', 'headers.X-Given-Key': SECRET });
      expect(refused.status).toBe(422);
      expect(refused.html).toContain('must be one of the values its schema lists.');
      for (const value of [SECRET, 'mars']) expect(refused.html).not.toContain(value);
      const lacking = await person.press(link, undefined, { 'query.region': 'eu' });
      expect([lacking.status, lacking.html]).toEqual([422, expect.stringContaining('This value is required.')]);
      expect((await read(path)).status.missing).toEqual({ headers: ['X-Given-Key'], query: ['region'] });

      const done = await person.press(link, undefined, { 'query.region': 'eu', 'headers.X-Given-Key': SECRET });
      expect([done.status, done.html]).toEqual([200, expect.stringContaining('<h1>Connected</h1>')]);
      expect((await read(path)).status.state).toBe('connected');
      expect((await echo(path)).status).toBe(200);
      expect(lastSeen()).toEqual({ key: SECRET, query: { r: 'eu', days: '3' } });

      for (const again of [await person.open(link), await person.press(link, undefined, { 'query.region': 'us' })]) {
        expect([again.status, again.html]).toEqual([410, expect.stringContaining('This link was used before')]);
      }
      await echo(path);
      expect(lastSeen().query.r).toBe('eu');
    },
  );

  verifies(
    'connection:setup:form',
    'has the defaults, limits and order of the publisher, room for long text, and the title and icon of the server',
    async () => {
      const open = await startUpstream();
      const weather = await createServer(app, owner, { displayName: 'City <weather>', description: 'Rain & sun.' });
      const properties = {
        zone: { type: 'string', title: 'Zone', maxLength: 40, 'x-from': { header: 'X-Zone' } },
        notes: { type: 'string', title: 'Notes', maxLength: 2_000, default: 'one\ntwo' },
        beta: { type: 'boolean', title: 'Beta', default: true },
        days: { type: 'integer', title: 'Days', default: 3, minimum: 1, maximum: 10 },
        rate: { type: 'number', title: 'Rate' },
        apiKey: { type: 'string', title: 'API key', default: 'public-default', minLength: 8 },
      };
      const schema = { type: 'object', required: ['zone', 'days'], properties };
      await publishExternal(app, owner, weather, { upstreamUrl: open.url, configSchema: schema });
      await uploadIcon(app, owner, weather, images['image/png']);
      const { path } = await connect({ server: weather });
      const link = await opened(path);
      const { html } = await person.open(link);
      expect(html).toContain('<h1>Set up City &lt;weather&gt;</h1>');
      expect(html).toContain('Rain &amp; sun.');
      const [, icon = ''] = /<img src="([^"]+)"/.exec(html) ?? [];
      const image = await person.open(icon.replaceAll('&amp;', '&'));
      expect([image.status, image.headers['content-type']]).toEqual([200, 'image/png']);
      const labels = [...html.matchAll(/<label [^>]*>([^<(]+)/g)].map(([, label]) => label?.trim());
      expect(labels).toEqual(Object.values(properties).map(({ title }) => title));
      const control = (name: string) => new RegExp(`<[a-z]+ [^>]*name="${name}"[^]*?(?=</p>)`).exec(html)?.[0] ?? '';
      expect(control('headers.X-Zone')).toMatch(/ type="text".* required maxlength="40" value="">/);
      expect(control('query.notes')).toMatch(/^<textarea [^>]*maxlength="2000"[^>]*>\none\ntwo<\/textarea>/);
      expect(control('query.beta')).toContain('<option value="true" selected>');
      expect(control('query.days')).toMatch(/ type="number".* min="1" max="10" step="1" value="3">/);
      expect(control('query.rate')).toMatch(/ type="number".* step="any" value="">/);
      expect(control('query.apiKey')).toMatch(/ type="password".* minlength="8" value="">/);

      const shown = { 'query.notes': 'one\r\ntwo', 'query.beta': 'true', 'query.days': '4' };
      const done = await person.press(link, undefined, { ...shown, 'headers.X-Zone': 'north' });
      expect(done.html).toContain('<h1>Connected</h1>');
      // A session of the values before may end at any time, by a DELETE with these.
      const sent = async () => {
        await echo(path);
        const call = open.requests.filter(({ method }) => method === 'POST').at(-1);
        return new URL(call?.path ?? '/', 'http://x').searchParams;
      };
      expect((await sent()).get('notes')).toBe('one\ntwo');
      // A default that was left as it is follows the publisher.
      const changed = { ...schema, properties: { ...properties, beta: { ...properties.beta, default: false } } };
      await publishExternal(app, owner, weather, { upstreamUrl: open.url, configSchema: changed });
      const later = await sent();
      expect([later.get('beta'), later.get('days')]).toEqual(['false', '4']);
      await open.close();
    },
  );

  verifies(
    'connection:setup:return',
    'leads back to an app whose origin the operator lists, and nowhere else',
    async () => {
      const { path } = await connect();
      const link = await opened(path);
      for (const address of [
        'https://evil.example/',
        'https://app.example.evil.example/',
        'javascript:alert(1)',
        '/docs',
      ]) {
        const refused = await person.open(`${link}&returnUrl=${encodeURIComponent(address)}`);
        expect([refused.status, refused.html]).toEqual([400, expect.stringContaining('SETUP_RETURN_ORIGINS')]);
      }
      const home = 'https://app.example/done?user=1';
      const isHome = (url: string) => url.startsWith('https://app.example');
      await person.open(`${link}&returnUrl=${encodeURIComponent(home)}`);
      const lacking = await person.press(link, isHome, { 'query.region': 'eu' });
      expect(lacking.status).toBe(422);
      const done = await person.press(link, isHome, { 'query.region': 'eu', 'headers.X-Given-Key': SECRET });
      expect([done.status, done.url]).toEqual([303, home]);
    },
  );

  verifies(
    'connection:setup:header',
    'accepts an Authorization header if OAuth is not possible, and shows the reason',
    async () => {
      const bare = await startUpstream({ requireHeaders: { authorization: `Bearer ${SECRET}` } });
      const { path } = await connect({ mcpUrl: bare.url, headers: { 'X-Kept': 'kept' } });
      const link = await opened(path);
      const shown = await person.open(link);
      expect(shown.html).toContain('Slipway cannot lead you there');
      expect(shown.html).toContain('type="password"');
      const empty = await person.press(link, undefined, { 'key.header': 'Authorization', 'key.value': '' });
      expect([empty.status, empty.html]).toEqual([422, expect.stringContaining('Nothing was filled in.')]);
      const broken = await person.press(link, undefined, { 'key.header': '', 'key.value': 'Bearer s\u00e9cret' });
      expect([broken.status, broken.html]).toEqual([422, expect.stringContaining('only plain letters')]);
      expect(broken.html).not.toContain('cret');
      const done = await person.press(link, undefined, {
        'key.header': 'Authorization',
        'key.value': `Bearer ${SECRET}`,
      });
      expect(done.html).toContain('<h1>Connected</h1>');
      expect(bare.requests.at(-1)?.headers).toMatchObject({ authorization: `Bearer ${SECRET}`, 'x-kept': 'kept' });
      const stored = await app.database.query('SELECT c::text AS row FROM connections c');
      expect(JSON.stringify(stored)).not.toContain(SECRET);
      await bare.close();
    },
  );
});

describe('a setup link', () => {
  const values = { 'query.region': 'eu', 'headers.X-Given-Key': SECRET };

  verifies(
    'connection:setup:browser',
    'takes no form from another site, from a browser without its cookies, or without the token of its page',
    async () => {
      const { path } = await connect();
      const link = await opened(path);
      const { html } = await person.open(link);
      const [, token = ''] = /name="form-token" value="([^"]+)"/.exec(html) ?? [];
      const jar = [...(person.cookies.get(new URL(app.url).host) ?? [])].map(([name, value]) => `${name}=${value}`);
      const send = (headers: Record<string, string>, formToken = token) =>
        fetch(link, {
          method: 'POST',
          headers,
          body: new URLSearchParams({ ...values, 'form-token': formToken }),
          redirect: 'manual',
        });
      const cookie = jar.join('; ');
      for (const site of ['cross-site', 'same-site', 'none']) {
        expect((await send({ cookie, 'sec-fetch-site': site })).status).toBe(403);
      }
      expect((await send({ cookie, origin: 'https://evil.example' })).status).toBe(403);
      expect((await send({ cookie, origin: 'http://127.0.0.1:1' })).status).toBe(403);
      expect((await send({ 'sec-fetch-site': 'same-origin' })).status).toBe(403);
      const other = newPerson({ publicUrl: app.env.baseUrl, url: app.url });
      const [, foreign = ''] = /name="form-token" value="([^"]+)"/.exec((await other.open(link)).html) ?? [];
      expect(foreign).not.toBe(token);
      for (const wrong of ['', 'x', foreign]) expect((await send({ cookie }, wrong)).status).toBe(403);
      for (const one of jar) {
        expect((await send({ cookie: jar.filter((part) => part !== one).join('; ') })).status).toBe(403);
      }
      const stranger = newPerson({ publicUrl: app.env.baseUrl, url: app.url });
      expect(await stranger.press(link, undefined, values)).toMatchObject({ status: 403 });
      expect((await read(path)).status.state).toBe('input_required');
      expect((await send({ cookie })).status).toBe(200);
      expect((await read(path)).status.state).toBe('connected');
    },
  );

  verifies('connection:setup:browser', 'opens under the name of the service only', async () => {
    const { path } = await connect();
    const link = new URL(await opened(path));
    const ask = (method: string, host: string) =>
      new Promise<[number | undefined, string]>((resolve, reject) => {
        const sent = request(app.url + link.pathname + link.search, { method, headers: { host } }, (answer) => {
          let text = '';
          answer.on('data', (part) => (text += String(part))).on('end', () => resolve([answer.statusCode, text]));
        });
        sent.on('error', reject).end();
      });
    for (const method of ['GET', 'POST']) {
      for (const host of [`evil.example:${link.port}`, 'evil.example', `${link.host}.evil.example`]) {
        const [status, text] = await ask(method, host);
        expect([status, text]).toEqual([403, expect.stringContaining('This is not the address of this service')]);
        expect(text).not.toContain('form-token');
      }
    }
    for (const host of [link.host, `localhost:${link.port}`]) expect((await ask('GET', host))[0]).toBe(200);
  });

  verifies(
    'connection:setup:browser',
    'is sent with headers that keep it out of frames, caches and referrers',
    async () => {
      const { path } = await connect();
      const { headers } = await person.open((await read(path)).status.setupUrl ?? '');
      expect(headers).toMatchObject({
        'x-frame-options': 'DENY',
        'referrer-policy': 'same-origin',
        'cache-control': 'no-store',
        'content-security-policy': expect.stringMatching(/^default-src 'none'; .*frame-ancestors 'none'$/),
      });
    },
  );

  verifies(
    'connection:setup:link',
    'opens nothing when it was changed, belongs to another connection or has expired',
    async () => {
      const { path, body } = await connect();
      const other = new URL((await connect()).body.status.setupUrl ?? '');
      const link = new URL(body.status.setupUrl ?? '');
      const changed = (change: (url: URL) => void) => {
        const url = new URL(link);
        change(url);
        return url.href;
      };
      const unknown = [
        changed((url) => (url.pathname = other.pathname)),
        changed((url) => (url.pathname = `${url.pathname}1`)),
        changed((url) => (url.pathname = url.pathname.replace('/1/', '/2/'))),
        changed((url) => (url.pathname = url.pathname.replace(/[^/]+$/, 'nobody'))),
        changed((url) => url.searchParams.set('signature', 'AAAA')),
        changed((url) => url.searchParams.delete('signature')),
        changed((url) => (url.search = '')),
        changed((url) => url.searchParams.set('expires', '99999999999')),
      ];
      for (const url of unknown) {
        expect(await person.open(url)).toMatchObject({ status: 404, html: expect.stringContaining('leads nowhere') });
        expect((await person.press(url, undefined, values)).status).not.toBe(200);
      }
      const expired = await person.open(changed((url) => url.searchParams.set('expires', '1')));
      expect([expired.status, expired.html]).toEqual([410, expect.stringContaining('This link has expired')]);
      await app.as(owner).delete(path);
      expect(await person.open(link.href)).toMatchObject({ status: 404 });
    },
  );

  verifies(
    'connection:setup:link',
    'expires when its owner sets other values, and an unneeded one shows that',
    async () => {
      const { path, body } = await connect();
      const { setupUrl: first = '' } = body.status;
      await put(path, { headers: { 'X-Given-Key': 'other' } });
      expect(await person.open(first)).toMatchObject({ status: 410 });
      const { setupUrl: second = '' } = (await read(path)).status;
      await put(path, { name: 'renamed' });
      expect(await person.open(second)).toMatchObject({ status: 200 });
      const guarded = await startGuarded({ wants: 'bare' });
      const { body: waiting, path: waitingPath } = await connect({ mcpUrl: guarded.url });
      guarded.unlock();
      await app.as(owner).put(waitingPath, { mcpUrl: guarded.url });
      const page = await person.open(waiting.status.setupUrl ?? '');
      expect([page.status, page.html]).toEqual([200, expect.stringContaining('No action needed')]);
      await guarded.close();
    },
  );

  verifies('connection:setup:link', 'is shown only to the owner of the connection', async () => {
    const { path } = await connect();
    const stranger = await app.account();
    for (const answer of [
      await app.as(stranger).get(path),
      await app.as(stranger).put(path, { headers: { 'X-Given-Key': SECRET } }),
      await app.as(stranger).post(`${path}/.tools/echo`, {}),
    ]) {
      expect([answer.status, answer.body]).toEqual([
        404,
        expect.objectContaining({ error: 'not_found', message: 'Resource not found' }),
      ]);
    }
  });
});
