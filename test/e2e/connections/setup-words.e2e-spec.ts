import { afterAll, beforeAll, beforeEach, describe, expect } from '@jest/globals';
import { startApp, type TestAccount, type TestApp } from '../../support/app.js';
import { releaseServer } from '../../support/database/server-rows.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { startAuthorizationServer, type AuthorizationServer } from '../../support/people/authorization-server.js';
import { personAt } from '../../support/people/credentials.js';
import type { Person } from '../../support/people/person.js';
import { freePort } from '../../support/upstream/upstream-net.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { verifies } from '../../support/verifies.js';

const SECRET = 'hunter2-and-more';

/** Words of standards, settings and routes, which an end user has no use for. */
const INTERNAL = /RFC|Slipway|\bOAuth\b|\bPUT\b|setupUrl|mcpUrl|metadata|namespace|\bschema\b|header "|query "/;

let app: TestApp;
let owner: TestAccount;
let namespace: string;
let upstream: Upstream;
let server: AuthorizationServer;
let person: Person;

beforeAll(async () => {
  [upstream, server] = await Promise.all([startUpstream(), startAuthorizationServer({ asks: true })]);
  app = await startApp({ PORT: String(await freePort()), APP_NAME: 'Acme & Co' });
  owner = await app.account();
  namespace = await createNamespace(app, owner);
});

beforeEach(() => {
  person = personAt(app);
});

afterAll(async () => {
  await Promise.all([app.close(), upstream.close(), server.close()]);
});

interface Status {
  state: string;
  setupUrl?: string;
}

async function connect(body: object): Promise<{ path: string; label: string; link: string }> {
  const { path, connectionId } = await createConnection(app, owner, body as Record<string, unknown>, { namespace });
  return { path, label: `${namespace}/${connectionId}`, link: await linkOf(path) };
}

async function statusOf(path: string): Promise<Status> {
  return ((await app.as(owner).get(path)).body as { status: Status }).status;
}

async function linkOf(path: string): Promise<string> {
  return (await statusOf(path)).setupUrl ?? '';
}

/** The page without its style and without the small lines, as text. */
function wordsOf(html: string): string {
  const main = /<main>([^]*)<\/main>/.exec(html)?.[1] ?? '';
  return main.replace(/<p class="soft">[^]*?<\/p>/g, '').replace(/<[^>]*>/g, ' ');
}

describe('the setup page', () => {
  verifies(
    'connection:setup:names',
    'names a connection as people do: by its name, its server, its host, and never by its id',
    async () => {
      const named = await server.protect(upstream.url, { resourceName: 'Weather of <Oslo>' });
      const { label, link } = await connect({ mcpUrl: named.url });
      const byServer = await person.open(link);
      expect(byServer.html).toContain('<h1>Connect Weather of &lt;Oslo&gt;</h1>');
      expect(byServer.html).toContain('<title>Connect Weather of &lt;Oslo&gt; · Acme &amp; Co</title>');
      expect(byServer.html).toContain('Acme &amp; Co asks for access to');
      expect(byServer.html).toContain(`<p class="soft">${label} · ${new URL(named.url).host}</p>`);
      expect(wordsOf(byServer.html)).not.toContain(label);
      expect(wordsOf(byServer.html)).not.toMatch(INTERNAL);

      const own = await connect({ mcpUrl: named.url, name: "Ann's weather" });
      const byName = await person.open(own.link);
      expect(byName.html).toContain('<h1>Connect Ann&#39;s weather</h1>');
      expect(byName.html).toContain('<strong>Ann&#39;s weather</strong> (Weather of &lt;Oslo&gt;)');

      const { url } = await server.protect(upstream.url);
      const bare = await person.open((await connect({ mcpUrl: url })).link);
      expect(bare.html).toContain(`<h1>Connect ${new URL(url).host}</h1>`);

      const asked = await person.press(own.link);
      const done = await person.open(`${asked.url}?answer=allow`);
      expect(done.html).toContain('Acme &amp; Co may now use <strong>Ann&#39;s weather</strong>.');
    },
  );
});

describe('the form of the setup page', () => {
  verifies('connection:setup:form', 'still has what was entered after an error, except secrets', async () => {
    const name = await createServer(app, owner);
    const text = { type: 'string' };
    const properties = {
      apiKey: { ...text, 'x-from': { header: 'X-Given-Key' } },
      city: { ...text, minLength: 3 },
      notes: { ...text, maxLength: 900 },
      unit: { ...text, enum: ['metric', 'imperial'] },
      days: { type: 'integer', default: 3 },
    };
    await releaseServer(app, name, {
      upstreamUrl: upstream.url,
      configSchema: { type: 'object', required: ['apiKey', 'city'], properties },
    });
    const { link, path } = await connect({ server: name });
    await person.open(link);
    const entered = { 'query.city': 'O"', 'query.notes': 'a\r\nb', 'query.unit': 'metric', 'query.days': '3' };
    const refused = await person.press(link, undefined, { ...entered, 'headers.X-Given-Key': SECRET });
    expect(refused.status).toBe(422);
    expect(refused.html).toContain('value="O&quot;"');
    expect(refused.html).toContain('>\na\nb</textarea>');
    expect(refused.html).toContain('<option value="metric" selected>');
    expect(refused.html).toContain('value="3"');
    expect(refused.html.match(/Enter it again/g)).toHaveLength(1);
    expect(refused.html).not.toContain(SECRET);
    expect(wordsOf(refused.html)).toContain('It must');
    expect(wordsOf(refused.html)).not.toMatch(INTERNAL);
    expect(await statusOf(path)).toMatchObject({ state: 'input_required' });
  });

  verifies('connection:setup:header', 'takes a key in any header by name', async () => {
    const keyed = await startUpstream({ requireHeaders: { 'x-api-key': SECRET } });
    const { path, link } = await connect({ mcpUrl: keyed.url });
    const { html } = await person.open(link);
    expect(html).toMatch(/name="key\.header"[^>]* type="text"[^>]* value="Authorization"/);
    expect(html).toMatch(/name="key\.value"[^>]* type="password"[^>]* value="">/);
    const post = (header: string, value = SECRET, to = link) =>
      person.press(to, undefined, { 'key.header': header, 'key.value': value });
    for (const [header, words] of [
      ['Host', '“Host” is set by the service itself.'],
      ['mcp-session-id', '“mcp-session-id” is set by the service itself.'],
      ['x api key', '“x api key” cannot be the name of a header.'],
    ] as const) {
      const refused = await post(header);
      expect([refused.status, refused.html]).toEqual([422, expect.stringContaining(words)]);
      expect(refused.html).toContain(`value="${header}"`);
      expect(refused.html).toContain('Enter it again');
      expect(refused.html).not.toContain(SECRET);
    }
    const empty = await post('x-api-key', '');
    expect([empty.status, empty.html]).toEqual([422, expect.stringContaining('Nothing was filled in.')]);

    const wrong = await post('X-Api-Key', 'wrong');
    expect(wrong.html).toContain('Your values were saved, but ');
    expect(wrong.html).toContain('value="X-Api-Key"');
    const done = await post('X-Api-Key', SECRET, await linkOf(path));
    expect(done.html).toContain('<h1>Connected</h1>');
    expect(keyed.requests.at(-1)?.headers).toMatchObject({ 'x-api-key': SECRET });
    const stored = await app.database.query('SELECT c::text AS row FROM connections c');
    expect(JSON.stringify(stored)).not.toContain(SECRET);
    await keyed.close();
  });
});
