import { beforeAll, describe, expect } from '@jest/globals';
import { testAccount, testApp, uniqueName, type TestAccount } from '../../support/app.js';
import { pathOf, releaseServer } from '../../support/database/server-rows.js';
import { createNamespace, createServer } from '../../support/factories.js';
import { signedInBrowser, type BrowserSession } from '../../support/people/browser-session.js';
import { startScripted } from '../../support/special-upstreams/scripted-upstream.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const owner = testAccount(app);
let upstreamUrl: string;
let person: TestAccount;
let browser: BrowserSession;

beforeAll(async () => {
  upstreamUrl = (await startScripted(() => '{"tools":[{"name":"forecast","inputSchema":{"type":"object"}}]}')).url;
  person = await app.account();
  browser = await signedInBrowser(app, person);
});

const slugOf = (name: string) => name.replace('/', '--');

async function serverOf(visibility: string, description: string): Promise<string> {
  const name = await createServer(app, owner, { description, visibility });
  const tools = [{ name: 'forecast', inputSchema: { type: 'object' } }];
  const warnings = [{ tool: 'forecast', message: 'A warning of the scan.' }];
  await releaseServer(app, name, { upstreamUrl, tools, warnings });
  return name;
}

describe('the catalogue', () => {
  verifies('console:catalogue-empty', 'leads authors to Publish, and others to Add a server', async () => {
    const author = await app.account();
    await createNamespace(app, author);
    for (const [by, way] of [
      [browser, 'add">Add a server'],
      [await signedInBrowser(app, author), 'publish">Publish'],
      [await signedInBrowser(app, app.operator), 'publish">Publish'],
    ] as const) {
      const { text } = await by.get('/ui/catalogue');
      expect(text).toMatch(new RegExp(`No servers<[^]*<a class="button primary" href="${way}</a></div>`));
      expect(text).toContain('a connection is your own use of one');
    }
  });

  verifies('console:catalogue', 'finds what the person may find, with what it does, needs and warns of', async () => {
    const word = uniqueName('word');
    const [open, restricted, hidden] = await Promise.all(
      ['public', 'restricted', 'private'].map((visibility) => serverOf(visibility, `${word} ${visibility}`)),
    );
    const { text } = await browser.get(`/ui/catalogue?q=${word}`);
    expect(text).toContain('2 servers.');
    for (const words of [
      open,
      restricted,
      `${word} public`,
      '1 tool.',
      'A warning of the scan.',
      'no values from you',
    ]) {
      expect(text).toContain(words);
    }
    expect(text).not.toContain(hidden);
    expect(text).toContain(`href="s/${slugOf(open)}#connect"`);
    expect(text).not.toContain(`href="s/${slugOf(restricted)}#connect"`);
    expect((await browser.get(`/ui/catalogue?q=${uniqueName('zzz')}`)).text).toContain('Nothing fits these words.');
    expect((await browser.get(`/ui/catalogue?q=${word}&page=9`)).status).toBe(200);
    for (const odd of ['?q[a]=1', '?page=-1', '?page=99999999999999', '?q=%00%3Cscript%3E']) {
      expect([odd, (await browser.get(`/ui/catalogue${odd}`)).status]).toEqual([odd, 200]);
    }
  });

  verifies('console:set-up', 'creates a connection in a namespace of the person, created if needed', async () => {
    const name = await serverOf('public', 'Set up');
    await app.as(owner).patch(pathOf(name), { displayName: 'Weather of all' });
    const newcomer = await app.account();
    const page = await signedInBrowser(app, newcomer);
    const submit = (own = `own-${newcomer.name}`) =>
      page.submit(`/ui/s/${slugOf(name)}`, { form: 'set-up', namespace: own }, '/ui/catalogue');
    expect((await page.get(`/ui/s/${slugOf(name)}`)).text).toMatch(
      new RegExp(`Your namespace will be <strong>${newcomer.name}[^]*name="namespace"[^>]* value="${newcomer.name}"`),
    );
    const taken = await createNamespace(app, owner);
    const refused = await submit(taken);
    expect([refused.status, refused.text]).toEqual([
      409,
      expect.stringMatching(/<details open><summary>Your namespace[^]*-namespace-fault"/),
    ]);
    const [one, two] = [await submit(), await submit()];
    const steps = `../../../ui/add/own-${newcomer.name}/${name.split('/')[1]}/tools`;
    expect([one.status, one.headers.location]).toEqual([303, steps]);
    expect((await page.get(`/ui/s/${slugOf(name)}`)).text).not.toContain('Your namespace will be');
    const made = new URL(String(two.headers.location), `${app.url}/ui/s/${slugOf(name)}/set-up`);
    const { text } = await page.get(made.pathname + made.search);
    expect(text).toMatch(/role="status"><div>The connection is set up[^]*>Works</);
    const [, , , namespace = '', connectionId = ''] = made.pathname.split('/');
    expect(connectionId).toBe(name.split('/')[1]);
    const { body } = await app.as(newcomer).get(`/connect/${namespace}/${connectionId}/.tools`);
    expect(body.tools).toMatchObject([{ name: 'forecast' }]);
    const { body: shown } = await app.as(newcomer).get(`/connect/${namespace}/${connectionId}`);
    expect(shown.name).toBe('Weather of all');
    expect((await browser.get(made.pathname)).status).toBe(404);
    // Another connection of the name stays.
    const named = await app.account();
    const own = await createNamespace(app, named);
    await app.as(named).put(`/connect/${own}/${connectionId}`, { mcpUrl: upstreamUrl });
    const other = await (await signedInBrowser(app, named)).submit(`/ui/s/${slugOf(name)}`, { form: 'set-up' });
    expect(other.headers.location).toMatch(new RegExp(`^[./]*/ui/add/${own}/(?!${connectionId}/)`));
  });

  verifies('console:ask', 'requests access to a restricted server, and shows the decision', async () => {
    const name = await serverOf('restricted', 'Asked for');
    const page = `/ui/s/${slugOf(name)}`;
    const refused = await browser.submit(page, { form: 'ask', text: ' ' });
    expect([refused.status, refused.text.includes('role="alert">Say in 1 to 500')]).toEqual([400, true]);
    expect((await browser.submit(page, { form: 'set-up' })).status).toBe(403);
    const asked = await browser.submit(page, { form: 'ask', text: '<b>Forecasts</b>' }, '/ui/catalogue');
    expect([asked.status, asked.headers.location]).toEqual([303, `../../../ui/s/${slugOf(name)}?done=asked`]);
    const shown = (await browser.get(page)).text;
    expect(shown).toContain('“&lt;b&gt;Forecasts&lt;/b&gt;”. Its owner has not answered yet.');
    expect(shown).not.toContain('/ask"');
    const { body } = await app.as(owner).get(pathOf(name, '/access-requests'));
    expect(body.requests).toMatchObject([{ account: { id: person.id }, text: '<b>Forecasts</b>' }]);
    const decide = (answer: object) =>
      app.as(owner).post(pathOf(name, `/access-requests/${body.requests[0].id as string}`), answer);
    await decide({ refuse: 'Use the other one.' });
    expect((await browser.get(page)).text).toMatch(/Refused[^]*“Use the other one.”[^]*\/ask"/);
    await app.as(owner).post(pathOf(name, '/grants'), { account: person.id, level: 'call' });
    await until(async () => /id="connect"[^]*\/set-up"/.test((await browser.get(page)).text), 'the grant is known');
    const hidden = await serverOf('private', 'Hidden');
    const forms: Record<string, string>[] = [{ form: 'ask', text: 'Let me in.' }, { form: 'set-up' }];
    for (const fields of forms) {
      expect((await browser.submit(`/ui/s/${slugOf(hidden)}`, fields, '/ui/')).status).toBe(404);
      expect((await browser.submit(`/ui/s/${uniqueName('none')}`, fields, '/ui/')).status).toBe(404);
    }
  });
});
