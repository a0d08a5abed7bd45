import { createServer, type Server, type ServerResponse } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { loadEnv } from '../../../src/config/env.js';
import { registryBase } from '../../../src/extensions/official-registry/registry-base.js';
import { startApp, type TestAccount, type TestApp } from '../../support/app.js';
import { signedInBrowser, type BrowserSession } from '../../support/people/browser-session.js';
import { start } from '../../support/upstream/upstream-clients.js';
import { freePort, listen, shut } from '../../support/upstream/upstream-net.js';

/** A registry on loopback, and what it returns next. */
let registry: Server;
let respond: (response: ServerResponse) => void;
const requested: URL[] = [];
let app: TestApp;
let account: TestAccount;
let browser: BrowserSession;

const listOf = (servers: unknown, nextCursor?: unknown) => (response: ServerResponse) =>
  void response
    .setHeader('content-type', 'application/json')
    .end(JSON.stringify({ servers, metadata: { count: 1, nextCursor } }));

const entryOf = (server: object, status = 'active') => ({
  server: { name: 'com.example/weather', description: 'Forecasts', version: '1.0.0', ...server },
  _meta: { 'io.modelcontextprotocol.registry/official': { status, isLatest: true } },
});
const remoteOf = (remote: object) => ({ remotes: [{ type: 'streamable-http', ...remote }] });

beforeAll(async () => {
  registry = createServer((request, response) => {
    requested.push(new URL(request.url ?? '', 'http://registry.invalid'));
    respond(response);
  });
  const port = await listen(registry);
  // The address of the registry is open, another one of this machine is not.
  app = await startApp({ OFFICIAL_REGISTRY_URL: `http://127.0.0.1:${port}/`, EGRESS_ALLOW: '127.0.0.1/32' });
  account = await app.account();
  browser = await signedInBrowser(app, account);
});
beforeEach(() => {
  requested.length = 0;
});
afterAll(() => shut(registry));

let searches = 0;
/** Opens the page with a search of its own, which no cache has. */
async function open(script: typeof respond, query = ''): Promise<string> {
  respond = script;
  const { status, text } = await browser.get(`/ui/registry?q=search-${(searches += 1)}${query}`);
  expect(status).toBe(200);
  return text;
}

/** The fields of the form of a card, as a browser would send them. */
function fieldsIn(page: string): Record<string, string> {
  const form = /<form method="post"[^>]*add\/find"[^]*?<\/form>/.exec(page)?.[0] ?? '';
  const fields = [...form.matchAll(/name="(\w+)" value="([^"]*)"/g)].map(([, name, value]) => [
    name,
    value.replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&'),
  ]);
  return Object.fromEntries(fields) as Record<string, string>;
}

const add = (form: string, fields: Record<string, string>) => browser.submit('/ui/add', { form, ...fields });

describe('/ui/registry', () => {
  it('searches the registry for the latest versions, continues by cursor, and asks once for each page', async () => {
    respond = listOf(
      [entryOf({ title: 'Weather of all', ...remoteOf({ url: 'https://mcp.example.com/mcp' }) })],
      'c:1',
    );
    for (const path of ['/ui/registry?q=weather%20map', '/ui/registry?q=weather%20map']) {
      const { text } = await browser.get(path);
      for (const words of [
        'Weather of all',
        'com.example/weather',
        'Forecasts',
        'https://mcp.example.com/mcp',
        'By URL',
      ])
        expect(text).toContain(words);
      expect(text).toContain('href="registry?q=weather+map&amp;cursor=c%3A1">Next');
    }
    await browser.get('/ui/registry?q=weather%20map&cursor=c:1');
    expect(requested.map(({ pathname, searchParams }) => [pathname, Object.fromEntries(searchParams)])).toEqual([
      ['/v0.1/servers', { limit: '30', version: 'latest', search: 'weather map' }],
      ['/v0.1/servers', { limit: '30', version: 'latest', search: 'weather map', cursor: 'c:1' }],
    ]);
  });

  it('adds a server in two clicks, and nothing by opening a page', async () => {
    const { url } = await start();
    const fields = fieldsIn(await open(listOf([entryOf(remoteOf({ url }))])));
    expect(fields).toMatchObject({ what: url });
    await browser.get(`/ui/add?${new URLSearchParams({ what: url, header: 'x-key' }).toString()}`);
    expect((await app.as(account).get('/namespaces')).body.namespaces).toEqual([]);
    const found = await add('find', fields);
    expect(found.text).toContain('The server answers.');
    const created = { what: url, mcpUrl: url, name: 'Weather', id: 'weather', namespace: account.name };
    expect((await add('create', created)).status).toBe(303);
    const { body } = await app.as(account).get(`/connect/${account.name}/weather`);
    expect(body).toMatchObject({ mcpUrl: url, status: { state: 'connected' } });
  });

  it('names the headers and variables that a person must enter, and asks for a key in its header', async () => {
    const { url } = await start({ requireHeaders: { 'x-api-key': 'k' } });
    const headers = [
      { name: 'X-Trace', description: 'Label of requests' },
      { name: 'X-Api-Key', description: 'Key of your account', isRequired: true, isSecret: true, value: 'Key {key}' },
      { name: 'bad header', isRequired: true },
    ];
    const page = await open(listOf([entryOf(remoteOf({ url, headers }))]));
    expect(page).toMatch(
      /X-Trace[^]*Label of requests[^]*optional[^]*X-Api-Key[^]*account, as Key \{key\}[^]*required/,
    );
    expect(page).not.toContain('bad header');
    const fields = fieldsIn(page);
    expect(fields).toMatchObject({ what: url, header: 'X-Api-Key' });
    expect((await add('find', fields)).text).toMatch(
      /name="header" value="X-Api-Key"|value="X-Api-Key"[^>]*name="header"/,
    );
    // Headers with fixed values go along.
    const fixed = { ...remoteOf({ url, headers: [{ name: 'X-Plan', value: 'free' }, headers[1]] }) };
    const listed = await add('find', fieldsIn(await open(listOf([entryOf(fixed)]))));
    for (const words of ['{&quot;X-Plan&quot;:&quot;free&quot;}', 'type="password"'])
      expect(listed.text).toContain(words);
    const template = 'https://{tenant}.example.com/mcp';
    const variables = { tenant: { description: 'Your tenant' } };
    const filled = await open(listOf([entryOf(remoteOf({ url: template, variables }))]));
    expect(filled).toMatch(/Replace in the URL[^]*tenant[^]*Your tenant/);
    expect(fieldsIn(filled)).toEqual({});
    const [, href = ''] = /href="(add\?what=[^"]*)"/.exec(filled) ?? [];
    expect((await browser.get(`/ui/${href}`)).text).toContain(`\n${template}</textarea>`);
  });

  it('shows the command of a package, with what its user must enter, and adds it as an uplink', async () => {
    const stdio = { type: 'stdio' };
    const environmentVariables = [{ name: 'TOKEN', isRequired: true }, { name: 'DEBUG' }];
    for (const [packages, command] of [
      [
        {
          ...{
            registryType: 'npm',
            identifier: '@acme/files',
            version: '1.2.3',
            transport: stdio,
            environmentVariables,
          },
          packageArguments: [
            { type: 'named', name: '--root', isRequired: true },
            { type: 'positional', value: 'a b' },
          ],
        },
        `env 'TOKEN=<TOKEN>' npx -y @acme/files@1.2.3 --root '<root>' 'a b'`,
      ],
      [{ registryType: 'pypi', identifier: 'mcp-git', version: '2', transport: stdio }, 'uvx mcp-git@2'],
      [
        { registryType: 'oci', identifier: 'docker.io/acme/x:1', transport: stdio, environmentVariables },
        `env 'TOKEN=<TOKEN>' docker run -i --rm -e TOKEN docker.io/acme/x:1`,
      ],
    ] as const) {
      const page = await open(listOf([entryOf({ packages: [packages] })]));
      expect(page).toMatch(/On your machine[^]*as an uplink/);
      const { text } = await add('find', fieldsIn(page));
      expect(text.replaceAll('&#39;', "'").replaceAll('&lt;', '<').replaceAll('&gt;', '>')).toContain(
        `>${command}</pre>`,
      );
      expect(text).toContain('name="transport" value="uplink"');
    }
    for (const hostile of [
      { registryType: 'npm', identifier: '--call=rm', transport: stdio },
      { registryType: 'npm', identifier: 'a; rm -rf /', transport: stdio },
      { registryType: '__proto__', identifier: 'a', transport: stdio },
      { registryType: 'mcpb', identifier: 'https://example.com/a.mcpb', transport: stdio },
      { registryType: 'npm', identifier: 'a', transport: { type: 'streamable-http', url: 'http://localhost' } },
    ]) {
      const page = await open(listOf([entryOf({ packages: [hostile] })]));
      expect(page).toContain('Slipway cannot connect to it');
      expect(fieldsIn(page)).toEqual({});
    }
  });

  it('renders hostile entries as text, and skips those of another shape', async () => {
    const script = '<script>alert(1)</script>"\u202e';
    const page = await open(
      listOf(
        [
          null,
          'text',
          7,
          {},
          entryOf({ name: 7 }),
          entryOf({ name: 'com.example/deleted' }, 'deleted'),
          entryOf({ name: 'com.example/old' }, 'deprecated'),
          entryOf({
            ...{
              name: script,
              title: 'x'.repeat(500_000),
              description: script,
              version: [],
              websiteUrl: 'javascript:alert(1)',
            },
            repository: { url: 'javascript:alert(2)' },
            remotes: [
              'text',
              { type: 'streamable-http', url: 'javascript:alert(3)' },
              { type: 'sse', url: 'https://{' },
              { type: 'sse' },
            ],
            packages: { length: 3 },
          }),
        ],
        { nested: true },
      ),
    );
    expect(page).not.toMatch(/<script>|\u202e|href="\s*javascript:|com\.example\/deleted/);
    expect(page).toMatch(/com\.example\/old[^]*Deprecated/);
    expect(page.match(/<section class="card" aria-labelledby="server-/g)).toHaveLength(2);
    expect(page.length).toBeLessThan(30_000);
    expect(page).not.toContain('>Next<');
  });

  it('says in one line that the registry is unavailable, and remains usable', async () => {
    let dialed = 0;
    const inside = createServer((_, response) => void response.end(String((dialed += 1))));
    const port = await freePort();
    await new Promise<void>((resolve) => inside.listen(port, '127.0.0.2', resolve));
    for (const script of [
      (response) => void response.writeHead(503).end(),
      (response) => void response.end('<html>'),
      (response) => void response.end('{"servers":7}'),
      (response) => void response.destroy(),
      (response) => void response.end(`"${'x'.repeat(3 * 1024 * 1024)}"`),
      (response) => void response.writeHead(302, { location: `http://127.0.0.2:${port}/v0.1/servers` }).end(),
      (response) => void response.writeHead(302, { location: 'file:///etc/passwd' }).end(),
    ] as (typeof respond)[]) {
      const page = await open(script);
      expect(page).toMatch(/role="alert"><div>The registry at 127\.0\.0\.1:\d+ is unavailable\. [^<]*<\/div>/);
      for (const words of ['Find by name', 'href="add">Add by address']) expect(page).toContain(words);
    }
    expect(dialed).toBe(0);
    await shut(inside);
  });

  it('is linked from the catalogue, which does not call the registry', async () => {
    expect((await browser.get('/ui/catalogue?q=a%26b')).text).toContain('href="registry?q=a%26b">Browse the official');
    expect((await browser.get('/ui/catalogue')).text).toContain('href="registry">Browse the official registry');
    expect(requested).toEqual([]);
  });
});

describe('OFFICIAL_REGISTRY_URL', () => {
  const baseOf = (value?: string) => registryBase(loadEnv({ OFFICIAL_REGISTRY_URL: value }));

  it('is the official registry by default, another base, or off, which leaves no page', async () => {
    expect(baseOf()).toBe('https://registry.modelcontextprotocol.io');
    expect(baseOf('https://a.example/b/')).toBe('https://a.example/b');
    for (const wrong of ['no', 'ftp://a.example', 'https://a:b@c.example', 'https://a.example/?b'])
      expect(() => baseOf(wrong)).toThrow(/^OFFICIAL_REGISTRY_URL is not valid: expected "off" or a URL/);
    const without = await app.sibling({ OFFICIAL_REGISTRY_URL: 'off' });
    const there = browser.at(without);
    expect((await there.get('/ui/registry')).status).toBe(404);
    expect((await there.get('/ui/catalogue')).text).not.toContain('official registry');
    await without.close();
  });
});
