import { describe, expect } from '@jest/globals';
import { testApp, uniqueName, type TestAccount } from '../../support/app.js';
import { releaseServer } from '../../support/database/server-rows.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { startAuthorizationServer } from '../../support/people/authorization-server.js';
import { signedInBrowser, type BrowserSession } from '../../support/people/browser-session.js';
import { closing, start } from '../../support/upstream/upstream-clients.js';
import { startEverything } from '../../support/upstream/everything.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const add = (browser: BrowserSession, fields: Record<string, string>) => browser.submit('/ui/add', fields);
const find = (browser: BrowserSession, what: string) => add(browser, { form: 'find', what });

async function newcomer(): Promise<[BrowserSession, TestAccount]> {
  const account = await app.account();
  return [await signedInBrowser(app, account), account];
}

describe('adding a server', () => {
  verifies('console:add', 'finds it by its address, and creates the connection and the namespace', async () => {
    const [browser, account] = await newcomer();
    const { url } = await start();
    expect((await browser.get('/ui/')).text).toMatch(/href="[^"]*add">Add a server/);
    const { origin } = new URL(url);
    const nearby = await find(browser, `${origin}/`);
    expect(nearby.text).toContain(`Did you mean ${origin}/mcp?`);
    const { status, text } = await find(browser, url);
    expect(status).toBe(200);
    for (const words of [
      'The server answers.',
      'It needs no login.',
      '<dt>Echo</dt>',
      `value="${account.name}"`,
      'Your namespace will be',
    ]) {
      expect(text).toContain(words);
    }
    const made = await add(browser, {
      form: 'create',
      what: url,
      mcpUrl: url,
      name: 'Mine',
      id: 'mine',
      namespace: account.name,
    });
    expect([made.status, made.headers.location]).toEqual([303, `../../ui/add/${account.name}/mine/tools`]);
    expect((await browser.get(`/ui/c/${account.name}/mine?done=added`)).text).toMatch(
      /role="status"><div>The server is added[^]*>Works</,
    );
    const again = await add(browser, {
      form: 'create',
      what: url,
      mcpUrl: url,
      name: 'Typed',
      id: 'mine',
      namespace: account.name,
    });
    expect([again.status, again.text]).toEqual([409, expect.stringMatching(/-id-fault"[^>]*>[^<]*mine already/)]);
    for (const words of ['value="Typed"', '<dt>Echo</dt>']) expect(again.text).toContain(words);
    const id = /name="id"[^>]* value="([^"]+)"/.exec(text)?.[1] ?? '';
    const form = { form: 'create', what: url, mcpUrl: url, name: 'Third', id, namespace: account.name };
    expect((await add(browser, form)).status).toBe(303);
    expect((await find(browser, url)).text).toMatch(new RegExp(`name="id"[^>]* value="${id}-2"`));
  });

  verifies('console:add', 'counts the same tools before and after it was added', async () => {
    const [browser, account] = await newcomer();
    const { url } = await startEverything();
    const [, count] = /<summary[^>]*>(\d+) tools<\/summary>/.exec((await find(browser, url)).text) ?? [];
    const form = { form: 'create', what: url, mcpUrl: url, name: 'All', id: 'all', namespace: account.name };
    expect((await add(browser, form)).status).toBe(303);
    const steps = `/ui/add/${account.name}/all/tools`;
    expect((await browser.get(steps)).text).toContain(`Tools (${count} of ${count} ticked)`);
    // Known once the server was also asked as a client that cannot be asked.
    await app.as(account).get(`/connect/${account.name}/all/.tools`);
    const rows = (await browser.get(steps)).text.split('<li>');
    const marked = rows.filter((row) => row.includes('Only in apps that can ask you'));
    expect(marked.map((row) => /<code>(.*?)</.exec(row)?.[1]).sort()).toEqual([
      'trigger-elicitation-request',
      'trigger-url-elicitation',
    ]);
  });

  verifies('console:add', 'takes an address without its scheme, and a command of a local server', async () => {
    const [browser] = await newcomer();
    const guessed = await find(browser, 'mcp.invalid/mcp');
    expect([guessed.status, guessed.text]).toEqual([
      200,
      expect.stringContaining('https://mcp.invalid/mcp</textarea>'),
    ]);
    for (const [command, name] of [
      ['npx -y @acme/files /data', '@acme/files'],
      ['uvx mcp-server-git', 'mcp-server-git'],
      ['docker run -i --rm acme/files', 'acme/files'],
    ]) {
      const { status, text } = await find(browser, command);
      expect([command, status]).toEqual([command, 200]);
      expect(text).toMatch(
        new RegExp(`It runs on your machine[^]*${command}</pre>[^]*name="name"[^>]* value="${name}"`),
      );
      expect(text).toContain('name="transport" value="uplink"');
    }
  });

  verifies('console:add', 'takes a key for a server that wants one, and never shows it', async () => {
    const [browser, account] = await newcomer();
    const { url } = await start({ requireHeaders: { 'x-api-key': 'key-of-the-test' } });
    expect((await find(browser, url)).text).toContain('It wants a key or token');
    const target = {
      form: 'create',
      what: url,
      mcpUrl: url,
      name: 'Keyed',
      namespace: account.name,
      header: 'x-api-key',
    };
    const refused = await add(browser, { ...target, id: 'no id', key: 'key-of-the-test' });
    expect([refused.status, refused.text.includes('key-of-the-test')]).toEqual([400, false]);
    expect((await add(browser, { ...target, id: 'keyed', key: 'key-of-the-test' })).status).toBe(303);
    expect((await app.as(account).get(`/connect/${account.name}/keyed`)).body.status.state).toBe('connected');
    // Without it, the page of the connection leads on.
    const later = await add(browser, { ...target, id: 'later' });
    expect(later.headers.location).toMatch(
      /^\.\.\/\.\.\/setup\/connections\/.*returnUrl=ui%2Fadd%2F.*%2Flater%2Ftools$/,
    );
    expect((await browser.get(`/ui/c/${account.name}/later`)).text).toMatch(/href="[^"]*setup[^"]*">Log in/);
  });

  verifies('console:add', 'takes a name of the catalogue, and lists the servers of an mcp.json', async () => {
    const [browser, account] = await newcomer();
    const { url } = await start();
    const owner = await app.account();
    const name = await createServer(app, owner, { visibility: 'public', displayName: 'Weather of all' });
    await releaseServer(app, name, {
      upstreamUrl: url,
      tools: [{ name: 'forecast', inputSchema: { type: 'object' } }],
    });
    const shown = await find(browser, name);
    for (const words of ['Weather of all', '<dt>forecast</dt>', `name="server" value="${name}"`])
      expect(shown.text).toContain(words);
    const hidden = await createServer(app, owner, { visibility: 'private' });
    for (const what of [hidden, 'nobody/nothing']) {
      const { status, text } = await find(browser, what);
      expect([status, text.includes('catalogue?q='), text.includes(what)]).toEqual([404, true, true]);
    }
    const file = {
      mcpServers: {
        remote: { url, headers: { 'X-A': 'b' } },
        local: { command: 'npx', args: ['-y', '<thing>'], env: { A: 'b' } },
      },
    };
    const { text } = await find(browser, JSON.stringify(file));
    for (const words of ['>remote<', `<code>${url}</code>`, '>local<', '>env A=b npx -y &#39;&lt;thing&gt;&#39;</pre>'])
      expect(text).toContain(words);
    const headers = JSON.stringify({ 'X-A': 'b' });
    const own = { form: 'create', what: '{', namespace: account.name };
    expect((await add(browser, { ...own, mcpUrl: url, headers, name: 'remote', id: 'remote' })).status).toBe(303);
    const local = await add(browser, { ...own, transport: 'uplink', command: 'npx x', name: 'local', id: 'local' });
    expect([local.status, local.headers.location]).toEqual([303, `../../ui/c/${account.name}/local?done=added`]);
    // Of several servers, the list comes again, with what is done.
    const first = { ...own, what: JSON.stringify(file), transport: 'uplink', at: '1', name: 'l', id: 'listed' };
    const again = await add(browser, first);
    expect(again.status).toBe(200);
    expect(again.text).toMatch(/>local<[^]*>Added<[^]*listed">Start it on your machine/);
    expect(again.text).toMatch(new RegExp(`>remote<[^]*name="added" value="1 ${account.name}/listed"[^]*name="id"`));
    const second = { ...own, what: JSON.stringify(file), mcpUrl: url, at: '0', name: 'r', id: 'second' };
    const both = await add(browser, { ...second, added: `1 ${account.name}/listed` });
    expect([both.text.match(/>Added</g)?.length, both.text.includes(`${account.name}/second/tools`)]).toEqual([
      2,
      true,
    ]);
    const broken = await find(browser, '{"mcpServers": ');
    expect([broken.status, broken.text.includes('{&quot;mcpServers&quot;: ')]).toEqual([400, true]);
  });

  verifies('console:add', 'adds nothing to the namespace of another account', async () => {
    const [browser] = await newcomer();
    const owner = await app.account();
    const namespace = await createNamespace(app, owner);
    const { url } = await start();
    const { status, text } = await add(browser, {
      form: 'create',
      what: url,
      mcpUrl: url,
      name: 'x',
      id: 'x',
      namespace,
    });
    expect([status, text.includes('already exists')]).toEqual([409, true]);
    expect((await app.as(owner).get(`/connect/${namespace}`)).body.connections).toEqual([]);
  });

  verifies('console:add', 'creates one connection from two concurrent forms for one id', async () => {
    const [browser, account] = await newcomer();
    const { url } = await start();
    const form = { form: 'create', what: url, mcpUrl: url, id: 'same', namespace: account.name };
    const answers = await Promise.all(['First', 'Second'].map((name) => add(browser, { ...form, name })));
    expect(answers.map(({ status }) => status).sort()).toEqual([303, 409]);
    const made = ['First', 'Second'][answers.findIndex(({ status }) => status === 303)];
    expect((await app.as(account).get(`/connect/${account.name}/same`)).body.name).toBe(made);
  });

  verifies(
    'console:add',
    'offers the namespaces of organizations where the person may manage connections',
    async () => {
      const { url } = await start();
      for (const role of ['owner', 'editor', 'member', 'guest']) {
        const { browser, namespace } = await member(role);
        const isOffered = role === 'owner' || role === 'editor';
        expect([role, (await find(browser, url)).text.includes(namespace)]).toEqual([role, isOffered]);
        const made = await add(browser, { form: 'create', what: url, mcpUrl: url, name: 'x', id: 'x', namespace });
        expect([role, made.status]).toEqual([role, isOffered ? 303 : 409]);
      }
    },
  );
});

/** A new organization, of which the account is a member, and its owner. */
async function organizationOf(account: TestAccount, role: string) {
  const [organization, owner] = [await app.account({ kind: 'organization' }), await app.account()];
  const members = `/accounts/${organization.id}/members`;
  await app.as(app.operator).put(`${members}/${owner.id}`, { role: 'owner' });
  await app.as(app.operator).put(`${members}/${account.id}`, { role });
  return { organization, owner };
}

/** A member of a new organization, with a namespace of the organization. */
async function member(role: string) {
  const [browser, account] = await newcomer();
  const { organization, owner } = await organizationOf(account, role);
  const namespace = uniqueName('ns');
  await app.as(owner).put(`/namespaces/${namespace}`, { organizationId: organization.id });
  return { browser, account, organization, owner, namespace };
}

describe('the steps after a server was added', () => {
  /** A connection of a new account, and the addresses of its steps. */
  async function added() {
    const [browser, account] = await newcomer();
    const { url } = await start();
    const { namespace, connectionId, path } = await createConnection(app, account, { mcpUrl: url });
    const steps = `/ui/add/${namespace}/${connectionId}`;
    const access = `/ui/access/connection/${encodeURIComponent(`${namespace}/${connectionId}`)}`;
    const toolsNow = async () => (await app.as(account).get(path)).body.tools as unknown;
    const grantsNow = async () => {
      const { body } = await app.as(account).get(`${path}/grants`);
      return (body.grants as { account: { name: string } }[]).map((grant) => grant.account.name).sort();
    };
    return { browser, account, path, steps, access, toolsNow, grantsNow };
  }
  const ticks = ({ text }: { text: string }) =>
    [...text.matchAll(/name="tool" value="([^"]*)"(?: checked)?/g)]
      .filter(([input]) => input.endsWith('checked') || !text.includes(`type="checkbox" ${input}`))
      .map(([, name]) => name);

  verifies('console:add-tools', 'offers the tools that were ticked, and no search loses a tick', async () => {
    const { browser, steps, access, toolsNow } = await added();
    const page = await browser.get(`${steps}/tools`);
    const all = ticks(page);
    expect([page.status, all.length > 3, page.text.includes('may write or delete data')]).toEqual([200, true, true]);
    const send = (fields: Record<string, string | string[]>) =>
      browser.submit(`${steps}/tools`, fields as Record<string, string>);
    expect(ticks(await send({ ticks: 'none' }))).toEqual([]);
    expect(ticks(await send({ ticks: 'all' }))).toEqual(all);
    const reads = ticks(await send({ ticks: 'reads', tool: all }));
    expect(reads.length).toBeLessThan(all.length);
    const searched = await send({ q: 'echo', tool: [all[1], 'echo', 'unknown'] });
    expect([ticks(searched).sort(), searched.text.includes('value="echo" checked')]).toEqual([
      [all[1], 'echo'].sort(),
      true,
    ]);
    const none = await send({ form: 'save', q: 'echo' });
    expect([none.status, none.text.includes('Select at least one tool'), none.text.includes('value="echo"')]).toEqual([
      400,
      true,
      true,
    ]);
    expect(await toolsNow()).toBeUndefined();
    const saved = await send({ form: 'save', tool: ['echo', all[1]] });
    expect([saved.status, saved.headers.location]).toEqual([303, `../../../../..${access}?from=add`]);
    expect(await toolsNow()).toEqual({ allow: all.filter((name) => name === 'echo' || name === all[1]) });
    expect(ticks(await browser.get(`${steps}/tools`)).sort()).toEqual(['echo', all[1]].sort());
    await send({ form: 'save', tool: all });
    expect(await toolsNow()).toBeUndefined();
  });

  verifies('console:add-access', 'gives access to people and organizations by name, and leads to Connect', async () => {
    const { browser, account, steps, access, grantsNow } = await added();
    const { body: own } = await app.as(account).get('/accounts/me');
    const { organization } = await organizationOf(account, 'member');
    const send = (name: string) => browser.submit(access, { form: 'grant', account: name, level: 'call', from: 'add' });
    const [, , , namespace, connectionId] = steps.split('/');
    expect((await browser.get(`${access}?from=add`)).text).toContain(
      `href="../../../ui/c/${namespace}/${connectionId}?done=added#connect"`,
    );
    expect(await grantsNow()).toEqual([]);
    const [one, two] = [await app.account(), await app.account()];
    const refused = await send(`${one.name}, nobody-${one.name},${own.name as string}`);
    expect([refused.status, refused.text]).toEqual([404, expect.stringContaining('No account has this id or name')]);
    // What is left to do stays in the form.
    expect(refused.text).toContain(`value="nobody-${one.name}, ${own.name as string}"`);
    expect(refused.text).toContain('Done: connect an app');
    expect(await grantsNow()).toEqual([one.name]);
    const sent = await send(`${one.name},${two.name},, ${organization.name}`);
    expect([sent.status, sent.headers.location]).toEqual([303, `../../../..${access}?done=granted&from=add`]);
    const granted = await grantsNow();
    expect(granted).toEqual([one.name, two.name, organization.name].sort());
    for (const wrong of [' ,', 'a\u0000b']) expect((await send(wrong)).status).toBe(400);
    expect(await grantsNow()).toEqual(granted);
  });

  verifies(
    'console:add-steps-closed',
    'shows nobody but who owns the connection a step, and takes no form; who manages it chooses its tools',
    async () => {
      const { account, path, steps, toolsNow, grantsNow } = await added();
      const [guest, friend, stranger] = [await app.account(), await app.account(), await app.account()];
      await app.as(account).post(`${path}/grants`, { account: guest.id, level: 'call' });
      await app.as(account).post(`${path}/grants`, { account: friend.id, level: 'manage' });
      const before = await grantsNow();
      for (const who of [guest, friend, stranger]) {
        const browser = await signedInBrowser(app, who);
        const fields = { tool: 'echo' };
        const status = who === stranger ? 404 : 403;
        for (const step of who === friend ? [] : ['tools']) {
          const shown = await browser.get(`${steps}/${step}`);
          const sent = await browser.submit(`${steps}/${step}`, { form: 'save', ...fields }, '/ui/');
          const missing = await browser.get(`/ui/add/nowhere-at-all/none/${step}`);
          expect([shown.status, sent.status, missing.status]).toEqual([status, status, 404]);
          expect(missing.text).toContain('There is nothing at this address');
        }
      }
      expect([await toolsNow(), await grantsNow()]).toEqual([undefined, before]);
      const browser = await signedInBrowser(app, friend);
      expect((await browser.get(`${steps}/tools`)).text).not.toContain('ui/access');
      const { status, headers } = await browser.submit(`${steps}/tools`, { form: 'save', tool: 'echo' });
      expect([status, headers.location]).toEqual([303, expect.stringMatching(/^(\.\.\/)+ui\/c\/.*\?done=changed$/)]);
      expect(await toolsNow()).toEqual({ allow: ['echo'] });
    },
  );

  verifies('console:add-login', 'leads from a login back to the steps, and nowhere else of this service', async () => {
    const authorization = closing(await startAuthorizationServer());
    const upstream = await start();
    const { url } = await authorization.protect(upstream.url);
    const [browser, account] = await newcomer();
    const found = (await find(browser, url)).text;
    expect(found).toMatch(/<h2 id="found">Found: it needs a login/);
    expect(found).not.toContain('Not found');
    const made = await add(browser, {
      form: 'create',
      what: url,
      mcpUrl: url,
      name: 'x',
      id: 'x',
      namespace: account.name,
    });
    const own = encodeURIComponent(`ui/c/${account.name}/x`);
    const linked = new RegExp(`href="[^"]*setup[^"]*returnUrl=${own}"[^>]*>Log in`);
    for (const page of ['/ui/', `/ui/c/${account.name}/x`]) expect((await browser.get(page)).text).toMatch(linked);
    const setup = new URL(made.headers.location, `${app.url}/ui/add/create`);
    const link = `${setup.pathname}${setup.search}`;
    const tools = `/ui/add/${account.name}/x/tools`;
    const waiting = await browser.get(tools);
    expect(waiting.text).toMatch(/Not known yet[^]*returnUrl=ui%2F[^]*">Log in/);
    for (const returnUrl of [
      '//evil.example/ui/',
      'https://evil.example/ui/',
      '/\\evil.example/ui/',
      'ui/../login',
      'login',
      `${app.url}.evil.example/ui/`,
      `${app.url}@evil.example/ui/`,
      '',
    ]) {
      const query = new URLSearchParams({ ...Object.fromEntries(setup.searchParams), returnUrl });
      expect([returnUrl, (await browser.get(`${setup.pathname}?${query.toString()}`)).status]).toEqual([
        returnUrl,
        400,
      ]);
    }
    const begun = await browser.submit(link, {});
    let at = new URL(begun.headers.location);
    const jar: string[] = [];
    while (at.origin !== app.url) {
      const answer = await fetch(at, { redirect: 'manual', headers: { cookie: jar.join('; ') } });
      jar.push(...answer.headers.getSetCookie().map((line) => line.split(';')[0]));
      at = new URL(answer.headers.get('location') ?? '', at);
    }
    const back = await browser.get(`${at.pathname}${at.search}`);
    expect([back.status, back.headers.location]).toEqual([303, `${app.url}${tools}`]);
    expect((await browser.get(tools)).text).toContain('value="echo" checked');
  });
});
