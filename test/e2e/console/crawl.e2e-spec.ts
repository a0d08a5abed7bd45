/**
 * Every page that a link leads to from `/ui/`, as each kind of caller. A page that is linked is visited without a word here; a form
 * must post to a page with a row in the access matrix.
 */
import { beforeAll, expect } from '@jest/globals';
import { pages } from '../../support/access/access-matrix.js';
import { testApp, uniqueName, type TestAccount } from '../../support/app.js';
import { releaseServer } from '../../support/database/server-rows.js';
import { createConnection, createServer } from '../../support/factories.js';
import { signedInBrowser, type BrowserSession } from '../../support/people/browser-session.js';
import { startScripted } from '../../support/special-upstreams/scripted-upstream.js';
import { verifies } from '../../support/verifies.js';

/** As long as a name of an account may be. */
const hostile = (word: string) => `<script>alert('${word}')</script>"\u202e${'x'.repeat(255)}`.slice(0, 255);

const app = testApp();
const callers: Record<string, TestAccount> = {};
let organization: TestAccount;

beforeAll(async () => {
  organization = await app.account({ kind: 'organization' });
  for (const role of ['owner', 'editor', 'member', 'guest']) {
    const account = (callers[role] = await app.account());
    await app.as(app.operator).put(`/accounts/${organization.id}/members/${account.id}`, { role });
  }
  const outsider = (callers.outsider = await app.account());
  callers.operator = app.operator;
  const works = await startScripted(() => '{"tools":[]}');
  const { owner, guest } = callers as { owner: TestAccount; guest: TestAccount };
  for (const [account, organizationId] of [
    [owner, organization.id],
    [owner, owner.id],
    [outsider, outsider.id],
  ] as const) {
    const namespace = uniqueName('ns');
    await app.as(account).put(`/namespaces/${namespace}`, { organizationId });
    const texts = { displayName: hostile('server').slice(0, 100), description: hostile('description') };
    for (const visibility of ['public', 'restricted', 'private']) {
      const server = await createServer(app, account, { namespace, visibility, ...texts });
      const tools = [{ name: hostile('tool'), description: hostile('tool') }];
      await releaseServer(app, server, { tools, warnings: [{ tool: 'a', message: hostile('warning') }] });
      const path = `/servers/${encodeURIComponent(server)}`;
      await app.as(account).post(`${path}/grants`, { account: guest.id, level: 'call', tools: { allow: ['a<b>'] } });
      if (visibility === 'private') continue;
      const asker = account === outsider ? owner : outsider;
      await app.as(asker).post(`${path}/access-requests`, { text: hostile('request') });
    }
    // That of the outsider does not work.
    const made = {
      mcpUrl: account === outsider ? 'http://127.0.0.1:9/mcp' : works.url,
      name: hostile('connection').replace('\u202e', ''),
    };
    const { path } = await createConnection(app, account, made, { namespace });
    await app.as(account).post(`${path}/grants`, { account: guest.id, level: 'manage' });
  }
  await app.as(owner).post(`/accounts/${organization.id}/api-keys`, { name: hostile('key') });
  for (const [name, { id }] of Object.entries({ ...callers, organization })) {
    await app.database.query('UPDATE accounts SET name = $2 WHERE id = $1', [id, hostile(name)]);
  }
});

const unescaped = (text: string) =>
  text.replace(
    /&(lt|gt|quot|amp|#39);/g,
    (_, name: string) => ({ lt: '<', gt: '>', quot: '"', amp: '&' })[name] ?? "'",
  );

/** What no page may have or lack, as words; none for a good one. */
function faultsOf(text: string): string[] {
  const tags = text.replace(/"[^"]*"/g, '""');
  const faults: [string, boolean][] = [
    ['not one h1', text.match(/<h1[ >]/g)?.length !== 1],
    ['no language', !text.includes('<html lang="en">')],
    ['no title', !/<title>[^<]*\S[^<]*<\/title>/.test(text)],
    ['a script in the page', /<script(?![^>]* src="")[^>]*>|<script[^>]*>(?!<\/script>)/i.test(tags)],
    [
      'a handler in the page',
      /<[a-z][^>]*\son[a-z]+=/i.test(tags) || /(?:href|src|action)="\s*javascript:/i.test(text),
    ],
    ['marks of direction', /[\u200e\u200f\u202a-\u202e\u2066-\u2069]/.test(text)],
  ];
  return faults.filter(([, isFault]) => isFault).map(([name]) => name);
}

/** The rows of the matrix that take the form of an address. Signing out has a row of its own kind. */
const rows = [...Object.keys(pages), 'POST /logout'].map((row) => ({
  row,
  address: new RegExp(`^${row.replace(/\{\w+\}/g, '[^/]+')}$`),
}));

/** Opens every page that links and forms with GET lead to. @returns the pages, and what is wrong with them */
async function crawl(browser: BrowserSession): Promise<{ seen: Set<string>; faults: string[] }> {
  const waiting = ['/ui/'];
  const seen = new Set(waiting);
  const faults: string[] = [];
  for (let path = waiting.shift(); path !== undefined && seen.size < 1_000; path = waiting.shift()) {
    const { status, text = '', headers } = await browser.get(path);
    const here = app.url + path;
    const lead = (address: string) => {
      const { origin, pathname, search } = new URL(unescaped(address), here);
      if (origin !== app.url || seen.has(pathname + search)) return;
      seen.add(pathname + search);
      waiting.push(pathname + search);
    };
    if (status >= 400) faults.push(`${path}: ${status}`);
    if (headers.location !== undefined) lead(headers.location);
    // The page of Swagger UI is not ours.
    if (status !== 200 || !headers['content-type']?.startsWith('text/html') || path === '/docs') continue;
    faults.push(...faultsOf(text).map((fault) => `${path}: ${fault}`));
    for (const [, href = ''] of text.matchAll(/<a [^>]*?href="([^"]*)"/g)) lead(href);
    for (const [, head = '', body = ''] of text.matchAll(/<form([^>]*)>([^]*?)<\/form>/g)) {
      const action = new URL(unescaped(/action="([^"]*)"/.exec(head)?.[1] ?? ''), here);
      if (!/method="post"/.test(head)) lead(action.href);
      else {
        if (!/name="form-token" value="[\w-]+"/.test(body)) faults.push(`${path}: a form without a token`);
        const route = `POST ${action.pathname.replace(/(.)\/$/, '$1')}`;
        if (action.origin !== app.url || !rows.some(({ address }) => address.test(route)))
          faults.push(`${path}: ${route} has no row in the access matrix`);
      }
    }
  }
  return { seen, faults };
}

for (const caller of ['operator', 'owner', 'editor', 'member', 'guest', 'outsider']) {
  verifies('console:crawl', `every link and every form that the ${caller} finds leads to a Slipway page`, async () => {
    const browser = await signedInBrowser(app, callers[caller]);
    const { seen, faults } = await crawl(browser);
    expect(faults).toEqual([]);
    expect(seen.size).toBeGreaterThan(3);
    expect([...seen]).toEqual(expect.arrayContaining(['/ui/', '/ui/catalogue', '/me', '/me/access']));
    const kinds = new Set([...seen].map((path) => /^\/ui\/[a-z]\//.exec(path)?.[0]));
    // The operator owns nothing and was granted nothing.
    const known = caller === 'operator' ? ['/ui/s/'] : ['/ui/c/', '/ui/s/'];
    expect([...kinds]).toEqual(expect.arrayContaining(known));
  });
}

verifies('console:crawl', 'pages of the organization are clean for each role', async () => {
  for (const role of ['owner', 'editor', 'member', 'guest']) {
    const { text } = await (await signedInBrowser(app, callers[role])).get(`/ui/o/${organization.id}`);
    expect([role, faultsOf(text)]).toEqual([role, []]);
  }
});

verifies('console:crawl', 'a page with a problem is found', () => {
  const good = '<html lang="en"><title>a</title><h1>b</h1><script src="a.js"></script>';
  expect(faultsOf(good)).toEqual([]);
  expect(faultsOf('<h1>a</h1><h1>b</h1><script>alert(1)</script><p onclick="a">\u202e')).toEqual([
    'not one h1',
    'no language',
    'no title',
    'a script in the page',
    'a handler in the page',
    'marks of direction',
  ]);
});
