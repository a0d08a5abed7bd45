import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { testAccount, testApp } from '../../support/app.js';
import { createConnection } from '../../support/factories.js';
import {
  formTokenIn,
  signedInBrowser,
  type Answer,
  type BrowserSession,
} from '../../support/people/browser-session.js';
import { startEverything } from '../../support/upstream/everything.js';
import { startScripted, type ScriptedUpstream } from '../../support/special-upstreams/scripted-upstream.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const owner = testAccount(app);
const guest = testAccount(app);
const stranger = testAccount(app);
let browsers: Record<'owner' | 'guest' | 'stranger', BrowserSession>;
let made: { namespace: string; connectionId: string; path: string };
let page: string;

beforeAll(async () => {
  const everything = await startEverything();
  const open = (account: typeof owner) => signedInBrowser(app, account);
  browsers = { owner: await open(owner), guest: await open(guest), stranger: await open(stranger) };
  made = await createConnection(app, owner, { mcpUrl: everything.url, tools: { deny: ['get-env'] } });
  page = `/ui/c/${made.namespace}/${made.connectionId}`;
  await app
    .as(owner)
    .post(`${made.path}/grants`, { account: guest.id, level: 'call', tools: { allow: ['echo', 'get-sum'] } });
});

/** The text of a page, with its quotes and ampersands. */
const textOf = ({ text }: Answer) => text.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&amp;', '&');

/** The hidden value of a continuation. */
const waitingIn = ({ text }: Answer) => {
  const hidden = /name="waiting" value="([^"]*)"/.exec(text)?.[1] ?? '';
  return textOf({ text: hidden } as Answer);
};

const tryTool = (tool: string, fields: Record<string, string>, browser = browsers.owner) =>
  browser.submit(`${page}/tools/${tool}`, fields);

describe('the tools of a connection', () => {
  verifies(
    'console:tools:listed',
    'are listed as the model sees them, found by their words, with those that are kept back',
    async () => {
      const { status, text } = await browsers.owner.get(page);
      expect(status).toBe(200);
      expect(text).toMatch(/Tools<\/h2><span class="badge">\d+ of \d+ offered/);
      expect(text).toContain(`<a href="../../..${page}/tools/echo"><code>echo</code></a>`);
      expect(text).toMatch(/get-env<\/code><\/div><span class="badge off">Not offered/);
      const found = (await browsers.owner.get(`${page}?q=long-RUNNING`)).text;
      expect([found.includes('tools/echo'), found.includes('tools/trigger-long-running-operation')]).toEqual([
        false,
        true,
      ]);
      expect((await browsers.owner.get(`${page}?q=nothing-of-it`)).text).toContain('No tool has these words.');
    },
  );

  verifies('console:tools:guest', 'are those of the grant for a guest', async () => {
    const { text } = await browsers.guest.get(page);
    expect(text).toContain('Tools</h2><span class="badge">2<');
    expect(text).not.toContain('get-env');
    expect((await browsers.guest.get(`${page}/tools/get-tiny-image`)).status).toBe(404);
    const answer = await tryTool('echo', { '#/message': 'by a guest', run: 'yes' }, browsers.guest);
    expect(textOf(answer)).toContain('>Echo: by a guest</pre>');
  });

  verifies('console:tools:unknown', 'are not known yet while the server was never asked', async () => {
    const other = await createConnection(app, owner, { mcpUrl: 'http://nowhere.invalid/mcp' });
    const { text } = await browsers.owner.get(`/ui/c/${other.namespace}/${other.connectionId}`);
    expect(text).toContain('Not known yet');
    expect(text).not.toContain('no tool');
  });

  verifies('console:try:foreign', 'are one page with what is missing for an account without a grant', async () => {
    const shown = await browsers.stranger.get(`${page}/tools/echo`);
    expect(shown.status).toBe(404);
    const sent = await browsers.stranger.submit(`${page}/tools/echo`, { '#/message': 'x', run: 'yes' }, '/me');
    expect(sent.status).toBe(404);
    expect(sent.text).not.toContain('Echo');
  });
});

describe('a tool that is tried', () => {
  verifies('console:try:tick', 'is called after the tick only, and keeps what was typed', async () => {
    const message = 'kept <b>"\u00e4\ttab\nline';
    const refused = await tryTool('trigger-url-elicitation', { '#/url': message });
    expect(refused.status).toBe(400);
    expect(refused.text).toContain('kept &lt;b&gt;&quot;\u00e4\ttab\nline');
    expect(refused.text).toContain('Tick this first.');
    expect(refused.text).not.toContain('In the log');
    const answer = await tryTool('echo', { '#/message': message });
    expect(answer.status).toBe(200);
    expect(textOf(answer)).toContain('Echo: kept &lt;b&gt;"\u00e4\ttab\nline');
  });

  it('shows the problem of a value next to its field, and is not called', async () => {
    const { status, text } = await tryTool('get-sum', { '#/a': 'five', '#/b': '2', run: 'yes' });
    expect(status).toBe(400);
    expect(text).toMatch(/value="five">[^]{0,200}Enter a number/);
    const missing = await tryTool('get-sum', { '#/a': '', '#/b': '2', run: 'yes' });
    expect(missing.text).toContain('Enter a value.');
    expect(textOf(await tryTool('get-sum', { '#': '{"a": 2, "b": 3}', run: 'yes' }))).toContain(
      'The sum of 2 and 3 is 5.',
    );
  });

  verifies('console:try:log', 'leaves a line in the log that names the browser', async () => {
    const { text } = await tryTool('get-sum', { '#/a': '1', '#/b': '2', run: 'yes' });
    const [, outcome, id] = /In the log: (\w+), [\d.]+ ms, .*<code>([\w-]+)<\/code>/.exec(text) ?? [];
    expect(outcome).toBe('ok');
    const line = await until(async () => {
      const { body } = await app.as(owner).get(`${made.path}/logs`);
      return JSON.stringify(body).split(String(id))[1];
    }, 'the call stands in the log');
    expect(line).toContain('"kind":"session"');
  });

  verifies('console:try:media', 'shows pictures from data: only, and its policy allows that', async () => {
    const { text, headers } = await tryTool('get-tiny-image', { run: 'yes' });
    expect(text).toMatch(/<img alt="Part 2 of the result" src="data:image\/png;base64,[\w+/=]+">/);
    expect(headers['content-security-policy']).toContain("img-src 'self' data:");
    expect(headers['content-security-policy']).toContain('media-src data:');
  });

  it('shows links and resources as text, and structured content', async () => {
    const links = (await tryTool('get-resource-links', { '#/count': '2', run: 'yes' })).text;
    expect(links).toContain('demo://resource');
    expect(links).not.toContain('href="demo:');
    const weather = await tryTool('get-structured-content', { '#/location': '"Chicago"', run: 'yes' });
    expect(textOf(weather)).toMatch(/Structured content[^]*"temperature"/);
  });

  it('shows the error of a tool', async () => {
    const answer = await tryTool('get-resource-reference', {
      '#': '{"resourceType": "Text", "resourceId": 0.5}',
      run: 'yes',
    });
    expect(textOf(answer)).toMatch(/The tool answered with an error|>Failed</);
  });

  it('lists the progress of a long call', async () => {
    const { text } = await tryTool('trigger-long-running-operation', { '#/duration': '1', '#/steps': '4', run: 'yes' });
    expect(text).toMatch(/<ol role="log">(?:<li>\d of 4 <\/li>\s*){3,4}/);
  });

  it('shows progress in its page while the call is at work, and is canceled when the page is left', async () => {
    let finish = (): unknown => undefined;
    const slow = await startScripted(({ id, method, params }, res) => {
      if (method === 'tools/list') {
        return JSON.stringify({
          tools: [{ name: 'slow', annotations: { readOnlyHint: true }, inputSchema: { type: 'object' } }],
        });
      }
      const { progressToken } = params?._meta as { progressToken: unknown };
      const send = (message: object) => res.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`);
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      send({ method: 'notifications/progress', params: { progressToken, progress: 1, total: 2, message: '<b>half' } });
      finish = () => send({ id, result: { content: [{ type: 'text', text: 'whole' }] } }) && res.end();
    });
    const { namespace, connectionId } = await createConnection(app, owner, { mcpUrl: slow.url });
    const path = `/ui/c/${namespace}/${connectionId}/tools/slow`;
    const token = formTokenIn(await browsers.owner.get(path));
    const cookie = [...browsers.owner.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const call = async (onProgress: (text: string) => unknown) => {
      const headers = { cookie, 'sec-fetch-site': 'same-origin' };
      const body = new URLSearchParams({ 'form-token': token });
      const { body: parts } = await fetch(app.url + path, { method: 'POST', headers, body });
      let text = '';
      let isSeen = false;
      for await (const part of (parts as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) {
        text += part;
        if (!isSeen && text.includes('half')) {
          isSeen = true;
          if (onProgress(text) === 'leave') break;
        }
      }
      return text;
    };
    const whole = await call((text) => {
      expect(text).toContain('<li>1 of 2 &lt;b&gt;half</li>');
      expect(text).not.toMatch(/whole|Try it|growing/);
      finish();
    });
    expect(whole).toMatch(/half<\/li><\/ol>[^]*Try it[^]*>whole<\/pre>[^]*<\/html>\s*$/);
    await call(() => 'leave');
    await until(() => slow.count('notifications/cancelled') === 1, 'the call is canceled');
    await slow.close();
  });

  verifies('console:try:input', 'asks for what the tool wants to know, and goes on with it', async () => {
    const asked = await tryTool('trigger-elicitation-request', { run: 'yes' });
    expect(asked.text).toContain('The tool asks you');
    expect(asked.text).toMatch(/String with default[^]{0,200}>\nIt was a dark and stormy night.<\/textarea>/);
    const waiting = waitingIn(asked);
    const fields = { run: 'yes', waiting, '0#/name': 'Ann', '0#/check': 'true' };
    const refused = await tryTool('trigger-elicitation-request', { ...fields, '0#/integer': 'many', action: 'accept' });
    expect([refused.status, refused.text.includes('Enter a number')]).toEqual([400, true]);
    const answer = await tryTool('trigger-elicitation-request', { ...fields, '0#/integer': '7', action: 'accept' });
    expect(textOf(answer)).toContain('Name: Ann');
  });

  it('shows the address that a tool sends its user to', async () => {
    const asked = await tryTool('trigger-url-elicitation', { '#/url': 'https://example.com/form', run: 'yes' });
    expect(asked.text).toContain('<a href="https://example.com/form" target="_blank" rel="noopener noreferrer">');
    const answer = await tryTool('trigger-url-elicitation', {
      run: 'yes',
      waiting: waitingIn(asked),
      action: 'accept',
    });
    expect(answer.text).toContain('In the log: ok');
  });
});

describe('a server with 2,000 tools and odd results', () => {
  const hostile = `<script>"'/?#%${'x'.repeat(240)}`.slice(0, 255);
  const parts: Record<string, object> = {
    long: { content: [{ type: 'text', text: `${'a'.repeat(100 * 1024)}END` }] },
    sound: {
      content: [
        { type: 'audio', mimeType: 'audio/wav', data: 'UklGRg==' },
        { type: 'image', mimeType: 'image/png" onerror="alert(1)', data: 'AAAA' },
        { type: 'image', mimeType: 'text/html', data: 'AAAA' },
        { type: 'resource', resource: { uri: 'file:///a.bin', mimeType: 'a/b', blob: 'AAAA' } },
      ],
    },
    [hostile]: { content: [{ type: 'text', text: '<script>alert(1)</script>' }] },
  };
  const typed = {
    type: 'object',
    properties: {
      day: { type: 'string', format: 'date', default: '2026-12-24' },
      at: { type: 'string', format: 'date-time', default: '2026-12-24T18:30:00Z' },
      mail: { type: 'string', format: 'email' },
      link: { type: 'string', format: 'uri' },
      count: { type: 'integer', minimum: 1, default: 3 },
      share: { type: 'number', multipleOf: 0.25 },
    },
  };
  /** The arguments of the calls. */
  const sent: unknown[] = [];
  let upstream: ScriptedUpstream;
  let other: typeof made;
  let at: string;

  beforeAll(async () => {
    const tools = [
      { name: 'typed', inputSchema: typed, annotations: { readOnlyHint: true } },
      ...Object.keys(parts).map((name) => ({
        name,
        inputSchema: { type: 'object' },
        annotations: { readOnlyHint: name !== hostile },
      })),
      ...Array.from({ length: 2_000 }, (_none, i) => ({ name: `tool-${i}`, inputSchema: { type: 'object' } })),
    ];
    upstream = await startScripted(({ method, params }) => {
      if (method === 'tools/list') return JSON.stringify({ tools });
      sent.push(params?.arguments);
      return JSON.stringify(parts[String(params?.name)] ?? { content: [] });
    });
    other = await createConnection(app, owner, { mcpUrl: upstream.url });
    at = `/ui/c/${other.namespace}/${other.connectionId}`;
    await app.as(owner).post(`${other.path}/grants`, { account: guest.id, level: 'call' });
  });
  afterAll(() => upstream.close());

  it('rejects forms that it cannot read, and no word of a form finds a member of every object', async () => {
    const words = ['__proto__', 'constructor', 'toString', 'valueOf', 'hasOwnProperty'];
    for (const word of words) expect((await browsers.owner.submit(at, { form: `settings/${word}` })).status).toBe(404);
    for (const params of [null, 1, 'x', [], true, { requestedSchema: null }]) {
      const waiting = JSON.stringify({ arguments: {}, inputRequests: { a: { params } } });
      const { status } = await browsers.owner.submit(`${at}/tools/long`, { waiting, action: 'accept' });
      expect([params, status === 500]).toEqual([params, false]);
    }
    const values = Object.fromEntries(Array.from({ length: 1_100 }, (_none, i) => [`#/m${i}`, 'x']));
    expect((await browsers.owner.submit(`${at}/tools/long`, values)).status).toBe(400);
  });

  verifies('console:try:formats', 'has controls by format, with the defaults of the schema', async () => {
    const address = `${at}/tools/typed`;
    const { text } = await browsers.owner.get(address);
    const inputs = Object.fromEntries(
      [...text.matchAll(/<input [^>]*name="#\/(\w+)"([^>]*)>/g)].map(([, name, rest]) => [name, rest]),
    );
    expect(inputs).toEqual({
      day: ' type="date"  autocomplete="off" value="2026-12-24"',
      at: ' type="datetime-local"  step="1" autocomplete="off" value="2026-12-24T18:30:00"',
      mail: ' type="email"  autocomplete="off" value=""',
      link: ' type="url"  autocomplete="off" value=""',
      count: ' type="number"  step="1" min="1" autocomplete="off" value="3"',
      share: ' type="number"  step="0.25" autocomplete="off" value=""',
    });
    await browsers.owner.submit(address, { '#/day': '2026-12-25', '#/at': '2026-12-24T18:30', '#/count': '4' });
    expect(sent.at(-1)).toEqual({ day: '2026-12-25', at: '2026-12-24T18:30:00Z', count: 4 });
  });

  it('gives recorded calls to no cache', async () => {
    const { headers } = await browsers.owner.get(`${at}/fixture`);
    expect(headers['cache-control']).toBe('no-store');
  });

  it('shows 50 tools of those to choose from, and keeps the ticks of the others', async () => {
    const choice = `/ui/add/${other.namespace}/${other.connectionId}/tools`;
    const { text } = await browsers.owner.get(choice);
    expect(text.match(/type="checkbox"/g)?.length).toBe(50);
    // The long list has the button also at its top, and shows two lines of each description.
    expect(text).toMatch(/formaction="[^]*<fieldset>[^]*<small class="clamped">[^]*formaction="/);
    expect(text.match(/type="hidden" name="tool"/g)?.length).toBe(1_954);
    const next = await browsers.owner.submit(choice, { ticks: 'reads', page: '1' });
    expect(next.text).toContain('(3 of 2004 ticked)');
  });

  verifies('console:tools:paged', 'has pages of tools', async () => {
    const { text } = await browsers.owner.get(`${at}?q=tool-&page=40`);
    expect(text).toContain('Tools</h2><span class="badge">2004<');
    expect(text).toContain('Page 40 of 40');
    expect(text.match(/href="[^"]*\/tools\/[^"]*"><code>/g)?.length).toBe(50);
    expect(text).toContain('tool-1999');
  });

  it('runs nothing without the tick, and shows hostile names as text', async () => {
    const address = `${at}/tools/${encodeURIComponent(hostile)}`;
    expect((await browsers.owner.get(at)).text).toContain(
      `/tools/${encodeURIComponent(hostile).replaceAll("'", '&#39;')}"`,
    );
    const before = upstream.count('tools/call');
    const refused = await browsers.owner.submit(address, { waiting: '{"arguments":{},"inputRequests":{}}' });
    expect([refused.status, upstream.count('tools/call') - before]).toEqual([400, 0]);
    const answer = await browsers.owner.submit(address, { run: 'yes' });
    expect([answer.status, upstream.count('tools/call') - before]).toEqual([200, 1]);
    expect(answer.text).toContain('>&lt;script&gt;alert(1)');
    expect(answer.text.match(/<script/g)?.length).toBe(1);
  });

  verifies('console:try:large', 'cuts a long result at 64 KB, and gives the whole as a download', async () => {
    const { text } = await browsers.owner.submit(`${at}/tools/long`, {});
    expect(text).toContain(`>${'a'.repeat(64 * 1024)}</pre>`);
    const [, data = ''] = /href="data:application\/json;base64,([^"]+)"/.exec(text) ?? [];
    expect(JSON.parse(Buffer.from(data, 'base64').toString())).toMatchObject(parts.long ?? {});
  });

  it('plays sound from data:, and shows no picture of another type', async () => {
    const { text } = await browsers.owner.submit(`${at}/tools/sound`, {});
    expect(text).toContain('<audio controls src="data:audio/wav;base64,UklGRg==">');
    expect(text).not.toContain('<img');
    expect(text).toContain('a/b, 3 bytes');
  });

  verifies(
    'console:tools:down',
    'keeps its last list when it is down, and shows a guest only the kind of the error',
    async () => {
      await upstream.close();
      const { port } = new URL(upstream.url);
      for (const [name, isOwner] of [
        ['owner', true],
        ['guest', false],
      ] as const) {
        const { text } = await browsers[name].submit(`${at}/tools/long`, {});
        expect(text).toMatch(/>Failed<[^]*In the log: exception/);
        expect([name, text.includes(port)]).toEqual([name, isOwner]);
      }
      expect((await browsers.owner.get(at)).text).toContain('Tools</h2><span class="badge">2004<');
    },
  );
});
