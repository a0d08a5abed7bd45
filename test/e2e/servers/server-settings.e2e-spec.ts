// Also run with the queue on Redis by test:long: jobs, and messages between processes.
import { describe, expect, it, jest } from '@jest/globals';
import { ReleaseResumptionService } from '../../../src/modules/releases/release-resumption.service.js';
import { ProgramSettingsService } from '../../../src/modules/servers/settings/program-settings.service.js';
import { ServersService } from '../../../src/modules/servers/servers.service.js';
import { PubSub } from '../../../src/platform/queue/pub-sub.js';
import { testAccount, testApp, uniqueName, type TestAccount } from '../../support/app.js';
import { createNamespace, createServer } from '../../support/factories.js';
import { images, uploadIcon } from '../../support/releases/icons.js';
import { pathOf, releaseServer, serverIdOf } from '../../support/database/server-rows.js';
import { drawNumber } from '../../support/seed.mjs';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const isoUtc = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const notOne = { error: expect.stringMatching(/\S/) };
const notFound = expect.objectContaining({ error: 'Server not found' });
const notMine = { error: "Forbidden: You don't own this server" };

const app = testApp();
const owner = testAccount(app);
const other = testAccount(app);

/** Characters that need nine each in a URL; drawn, because an index would compress a repetition. */
function randomHan(count: number): string {
  return Array.from({ length: count }, () => String.fromCharCode(0x4e00 + Math.floor(drawNumber() * 0x5000))).join('');
}

/** Everything of a server that people can set, as the database has it. */
async function stored(name: string): Promise<Record<string, unknown>> {
  const [row] = await app.database.query<Record<string, unknown>[]>(
    `SELECT namespace_id, name, slug, display_name, description, homepage, repository_url, repo_owner, repo_name,
            backlink_url, license, icon_url, unlisted, verified FROM servers WHERE id = $1`,
    [await serverIdOf(app, name)],
  );
  return row ?? {};
}

describe('PATCH /servers/{qualifiedName}', () => {
  const full = {
    displayName: 'Weather 2',
    description: '',
    homepage: 'https://weather.example.com',
    repositoryUrl: 'https://github.com/Acme/Weather.git',
    backlinkUrl: 'http://acme.example.com/blog?post=1#top',
    license: 'MIT',
    unlisted: true,
  };

  verifies('server:update:changes', 'changes what is given and keeps the rest', async () => {
    const namespace = await createNamespace(app, owner);
    for (const server of ['weather', '']) {
      const name = await createServer(app, owner, { namespace, server, displayName: 'Weather', description: 'Old.' });
      const response = await app.as(owner).patch(pathOf(name), full);
      expect([response.status, response.body]).toEqual([200, { success: true, namespace, server }]);
      const texts = { displayName: 'Weather 2', description: '' };
      expect((await app.as(other).get(pathOf(name))).body).toMatchObject(texts);
      const listed = (
        await app.as(owner).get(`/servers?namespace=${namespace}&qualifiedName=${encodeURIComponent(name)}`)
      ).body;
      expect(listed.servers).toMatchObject([{ ...texts, homepage: full.homepage }]);
      const before = await stored(name);
      expect(before).toMatchObject({ repo_owner: 'acme', repo_name: 'weather', license: 'MIT', unlisted: true });
      expect((await app.as(owner).patch(pathOf(name), {})).status).toBe(200);
      expect((await app.as(owner).patch(pathOf(name))).status).toBe(200);
      expect((await app.as(owner).patch(pathOf(name), { nonsense: 1, name: 'x', verified: true })).status).toBe(200);
      expect(await stored(name)).toEqual(before);
      expect(
        (await app.as(owner).patch(pathOf(name), { license: null, repositoryUrl: null, homepage: null })).status,
      ).toBe(200);
      const cleared = { license: null, repository_url: null, repo_owner: null, repo_name: null, homepage: null };
      expect(await stored(name)).toEqual({ ...before, ...cleared });
    }
  });

  verifies('server:update:invalid', 'refuses values of another form, and then changes nothing', async () => {
    const name = await createServer(app, owner);
    await app.as(owner).patch(pathOf(name), { ...full, unlisted: false });
    const before = await stored(name);
    const urls = [
      ...['', 'weather', 'ftp://a.example', 'javascript:alert(1)', 'data:text/html,x', '//a.example', 'https://'],
      ...[
        'https://me:secret@a.example',
        'https://a.example/ b',
        'https://a.example/\0',
        `https://a.example/${'x'.repeat(2_048)}`,
        // Within the limit as it is written, beyond it as it is stored.
        `https://a.example/${randomHan(1_000)}/${randomHan(1_000)}`,
      ],
      ...[5, true, {}, []],
    ];
    const bodies = [
      ...['homepage', 'repositoryUrl', 'backlinkUrl', 'iconUrl'].flatMap((field) =>
        urls.map((value) => ({ [field]: value })),
      ),
      ...['displayName', 'description'].flatMap((field) =>
        [null, 5, {}, ['a'], 'a\0b', '\ud800'].map((value) => ({ [field]: value })),
      ),
      ...[
        ...['a'.repeat(256), '', 'bell\u0007', 'two\nlines'].map((displayName) => ({ displayName })),
        { description: 'a'.repeat(10_001) },
        { license: 'a'.repeat(256) },
        { license: 5 },
      ],
      ...[null, 'true', 1].map((unlisted) => ({ unlisted })),
      { displayName: 'Good', homepage: 'bad' },
    ];
    for (const body of bodies) {
      const response = await app.as(owner).patch(pathOf(name), body);
      expect([body, response.status, response.body]).toEqual([body, 400, notOne]);
    }
    expect(await stored(name)).toEqual(before);
  });

  verifies('server:body:misspelt', 'refuses a misspelt member with the right name, like all bodies here', async () => {
    const name = await createServer(app, owner, { displayName: 'Weather' });
    const before = await stored(name);
    const [place, as] = [pathOf(name), app.as(owner)];
    const refused = [
      [await as.patch(place, { license: 'MIT', displayNam: 'Forecasts' }), 'displayNam', 'displayName'],
      [await as.patch(place, { iconURL: 'https://a.example/i.png' }), 'iconURL', 'iconUrl'],
      [await as.put(place, { descripton: 'x' }), 'descripton', 'description'],
      [
        await as.put(`${pathOf(await createNamespace(app, owner))}`, { displayname: 'x' }),
        'displayname',
        'displayName',
      ],
      [await as.put(`${place}/secrets`, { name: 'KEY', value: 'v', valu: 'w' }), 'valu', 'value'],
      [await as.patch(`${place}/runtime`, { logPayload: true }), 'logPayload', 'logPayloads'],
      [await as.patch(`${place}/domains/managed`, { subDomain: 'acme-two' }), 'subDomain', 'subdomain'],
      [await app.as(app.operator).put(`${place}/verified`, { verified: true, verifed: true }), 'verifed', 'verified'],
    ] as const;
    for (const [{ status, body }, wrong, right] of refused) {
      expect([status, body]).toEqual([400, { error: `There is no member "${wrong}": did you mean "${right}"?` }]);
    }
    expect((await as.get(`${place}/secrets`)).body).toEqual([]);
    expect(await stored(name)).toEqual(before);
    // What clients may send back, and what newer ones may add.
    const further = { qualifiedName: name, remote: true, tools: null, visibility: 'public', x: 1 };
    expect((await as.patch(place, { ...further, license: 'MIT' })).status).toBe(200);
    expect((await as.put(place, { ...further, displayName: 'Weather' })).status).toBe(201);
    expect(await stored(name)).toEqual({ ...before, license: 'MIT' });
  });

  verifies('server:update:foreign', 'is the owner’s alone', async () => {
    const name = await createServer(app, owner);
    const before = await stored(name);
    for (const account of [other, app.operator]) {
      const response = await app.as(account).patch(pathOf(name), { displayName: 'Mine' });
      expect([response.status, response.body]).toEqual([403, notMine]);
    }
    const [namespace = ''] = name.split('/');
    for (const missing of [`${namespace}/never`, namespace, `${uniqueName('never')}/weather`, 'A/b']) {
      const response = await app.as(owner).patch(pathOf(missing), { displayName: 'Mine' });
      expect([missing, response.status, response.body]).toEqual([missing, 404, notFound]);
    }
    expect((await app.as().patch(pathOf(name), { displayName: 5 })).body).toEqual(
      expect.objectContaining({ error: 'Unauthorized' }),
    );
    expect(await stored(name)).toEqual(before);
  });
});

describe('PUT /servers/{qualifiedName}/verified', () => {});

describe('POST /servers/{qualifiedName}/transfer', () => {
  const move = (account: TestAccount, name: string, body: object) =>
    app.as(account).post(pathOf(name, '/transfer'), body);

  verifies('server:transfer:moved', 'moves a server with all it has', async () => {
    const [from, to] = [await createNamespace(app, owner), await createNamespace(app, owner)];
    const name = await createServer(app, owner, { namespace: from, server: 'weather', displayName: 'Weather' });
    await releaseServer(app, name);
    await uploadIcon(app, owner, name, images['image/png']);
    await app.as(owner).put(pathOf(name, '/secrets'), { name: 'KEY', value: 'v' });
    const [id, { slug }] = [await serverIdOf(app, name), await stored(name)];
    const steps = [
      [name, { targetOrganizationId: owner.id, targetNamespace: to }, `${to}/weather`],
      [`${to}/weather`, { targetOrganizationId: 'me', targetNamespace: to, targetSlug: 'sky' }, `${to}/sky`],
      [`${to}/sky`, { targetOrganizationId: 'me', targetNamespace: from, targetSlug: '' }, from],
      [from, { targetOrganizationId: 'me', targetNamespace: to }, to],
      [to, { targetOrganizationId: 'me', targetNamespace: to }, to],
      [to, { targetOrganizationId: 'me', targetNamespace: to, targetSlug: 'weather' }, `${to}/weather`],
    ] as const;
    for (const [source, body, qualifiedName] of steps) {
      const [namespace, server = ''] = qualifiedName.split('/');
      const response = await move(owner, source, body);
      expect([response.status, response.body]).toEqual([200, { success: true, namespace, server, qualifiedName }]);
      if (source !== qualifiedName) expect((await app.as(owner).get(pathOf(source))).status).toBe(404);
      expect(await serverIdOf(app, qualifiedName)).toBe(id);
      expect((await app.as(owner).get(pathOf(qualifiedName, '/secrets'))).body).toHaveLength(1);
      expect((await app.as(owner).get(pathOf(qualifiedName, '/icon'))).status).toBe(200);
      // The address of the run endpoint stays.
      expect((await app.as(owner).get(pathOf(qualifiedName))).body.deploymentUrl).toBe(
        `${app.url}/run/${String(slug)}`,
      );
    }
    // The search finds the server under its new namespace, and the old name is free.
    expect((await app.as(other).get(`/servers?q=${to}`)).body.servers[0].qualifiedName).toBe(`${to}/weather`);
    expect((await app.as(owner).put(pathOf(name))).status).toBe(201);
  });

  verifies('server:transfer:refused', 'needs a namespace of one’s own and a free name', async () => {
    const [from, to] = [await createNamespace(app, owner), await createNamespace(app, owner)];
    const theirs = await createNamespace(app, other);
    const name = await createServer(app, owner, { namespace: from, server: 'weather' });
    await createServer(app, owner, { namespace: to, server: 'weather' });
    const before = await stored(name);
    const me = { targetOrganizationId: owner.id };
    const refused: [object, number, object][] = [
      [{ ...me, targetNamespace: theirs }, 403, notOne],
      [{ targetOrganizationId: other.id, targetNamespace: theirs }, 403, notOne],
      [{ targetOrganizationId: other.id, targetNamespace: to, targetSlug: 'free' }, 403, notOne],
      [{ ...me, targetNamespace: uniqueName('never') }, 404, expect.objectContaining({ error: 'Namespace not found' })],
      [{ ...me, targetNamespace: to }, 409, { error: expect.stringContaining(`"${to}/weather" exists`) }],
      [{ ...me, targetNamespace: to, targetSlug: 'a b' }, 400, notOne],
      [{ ...me, targetNamespace: to, targetSlug: 'logs' }, 400, notOne],
      [{ ...me, targetNamespace: to, targetSlug: null }, 400, notOne],
      [{ ...me, targetNamespace: '' }, 400, notOne],
      [{ targetNamespace: to }, 400, notOne],
      [{ ...me }, 400, notOne],
      [{}, 400, notOne],
    ];
    for (const [body, status, answer] of refused) {
      const response = await move(owner, name, body);
      expect([body, response.status, response.body]).toEqual([body, status, answer]);
      if (status === 409) expect(response.headers['x-should-retry']).toBe('false');
    }
    const good = { ...me, targetNamespace: to, targetSlug: 'free' };
    for (const account of [other, app.operator]) {
      const response = await move(account, name, { targetOrganizationId: 'me', targetNamespace: theirs });
      expect([response.status, response.body]).toEqual([403, notMine]);
    }
    expect((await move(owner, `${from}/never`, good)).body).toEqual(notFound);
    expect((await app.as().post(pathOf(name, '/transfer'), good)).status).toBe(401);
    expect(await stored(name)).toEqual(before);
  });
});

describe('secrets of a server', () => {
  verifies(['server:secret:set', 'server:secret:never-returned'], 'are stored sealed and never returned', async () => {
    const namespace = await createNamespace(app, owner);
    for (const server of ['weather', '']) {
      const name = await createServer(app, owner, { namespace, server });
      const path = pathOf(name, '/secrets');
      expect((await app.as(owner).get(path)).body).toEqual([]);
      for (const value of ['canary-1', 'canary-2 ❄\nsecond line']) {
        const response = await app.as(owner).put(path, { name: 'API_KEY', value });
        expect([response.status, response.body]).toEqual([200, { success: true }]);
        expect(response.headers['slipway-hint']).toMatch(/^The server is public: every account/);
        const id = await serverIdOf(app, name);
        expect(await app.get(ProgramSettingsService).secretsOf(id, ['API_KEY', 'OTHER'])).toEqual({ API_KEY: value });
      }
      await app.as(owner).put(path, { name: '_b', value: 'x' });
      const list = await app.as(owner).get(path);
      expect(list.body.toSorted((a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1))).toEqual([
        { name: 'API_KEY', type: 'secret_text' },
        { name: '_b', type: 'secret_text' },
      ]);
      const rows = await app.database.query('SELECT * FROM server_secrets');
      expect(JSON.stringify(rows)).not.toContain('canary');
      const removed = await app.as(owner).delete(`${path}/API_KEY`);
      expect([removed.status, removed.body]).toEqual([200, { success: true }]);
      const again = await app.as(owner).delete(`${path}/API_KEY`);
      expect([again.status, again.body]).toEqual([404, { error: 'Secret not found' }]);
      expect((await app.as(owner).get(path)).body).toEqual([{ name: '_b', type: 'secret_text' }]);
    }
  });

  verifies('server:secret:limits', 'have names that can be bound, and bounds', async () => {
    const name = await createServer(app, owner);
    const path = pathOf(name, '/secrets');
    const faulty = [
      ...['', '1A', 'A-B', 'A B', 'A.B', 'Ä', 'A\n', 'a'.repeat(129), 5, null].map((given) => ({
        name: given,
        value: 'x',
      })),
      ...['', 'a'.repeat(16_385), 'a\0b', '\ud800', 5, null, undefined].map((value) => ({ name: 'A', value })),
      {},
    ];
    for (const body of faulty) {
      const response = await app.as(owner).put(path, body);
      expect([body, response.status, response.body]).toEqual([body, 400, notOne]);
    }
    expect((await app.as(owner).get(path)).body).toEqual([]);
    expect((await app.as(owner).put(path, { name: 'a'.repeat(128), value: 'a'.repeat(16_384) })).status).toBe(200);
    const names = Array.from({ length: 104 }, (_, i) => `S_${i}`);
    const answers: { status: number }[] = [];
    // No more at once than the few connections of a test to its database serve in time.
    for (let from = 0; from < names.length; from += 26) {
      const portion = names.slice(from, from + 26);
      answers.push(...(await Promise.all(portion.map((one) => app.as(owner).put(path, { name: one, value: one })))));
    }
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(99);
    expect(answers.filter(({ status }) => status === 400)).toHaveLength(5);
    expect((await app.as(owner).get(path)).body).toHaveLength(100);
    for (const none of ['a%00b', '%F0%9F%94%91', 'A.B', 'a'.repeat(129)]) {
      const response = await app.as(owner).delete(`${path}/${none}`);
      expect([none, response.status, response.body]).toEqual([none, 404, { error: 'Secret not found' }]);
    }
    // Replacing one is no new one.
    expect((await app.as(owner).put(path, { name: 'a'.repeat(128), value: 'other' })).status).toBe(200);
  });

  it('are one secret when set many times concurrently under one name', async () => {
    const name = await createServer(app, owner);
    const values = Array.from({ length: 10 }, (_, i) => `value ${i}`);
    const path = pathOf(name, '/secrets');
    const answers = await Promise.all(values.map((value) => app.as(owner).put(path, { name: 'A', value })));
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200));
    expect((await app.as(owner).get(path)).body).toHaveLength(1);
    const { A = '' } = await app.get(ProgramSettingsService).secretsOf(await serverIdOf(app, name), ['A']);
    expect(values).toContain(A);
  });
});

describe('the managed domain of a server', () => {
  const rename = (account: TestAccount, name: string, subdomain: unknown, id = 'managed') =>
    app.as(account).patch(pathOf(name, `/domains/${id}`), { subdomain });

  it('never begins with what another namespace’s servers are reached by', async () => {
    const victim = await createNamespace(app, owner);
    const name = await createServer(app, owner, { namespace: victim, server: 'pay' });
    const lookalike = await createNamespace(app, other, `${victim}--pay`);
    await app.as(owner).delete(pathOf(name));
    const slugOf = async (server: string) =>
      String((await app.as(other).get(pathOf(server, '/domains'))).body.domains[0].subdomain);
    await createServer(app, other, { namespace: lookalike, server: '' });
    expect(await slugOf(lookalike)).toMatch(new RegExp(`^${lookalike}-[a-z0-9]{4}$`));
    const again = await createServer(app, owner, { namespace: victim, server: 'pay' });
    expect((await app.as(owner).get(pathOf(again, '/domains'))).body.domains[0].subdomain).toBe(`${victim}--pay`);
  });

  verifies('server:domain:managed', 'is its run endpoint, and its owner renames it', async () => {
    const namespace = await createNamespace(app, owner);
    for (const [server, slug] of [
      ['weather', `${namespace}--weather`],
      ['', namespace],
    ] as const) {
      const name = await createServer(app, owner, { namespace, server });
      await releaseServer(app, name);
      const expected = {
        id: 'managed',
        type: 'managed',
        hostname: '127.0.0.1',
        subdomain: slug,
        url: `${app.url}/run/${slug}`,
        createdAt: expect.stringMatching(isoUtc),
        updatedAt: expect.stringMatching(isoUtc),
      };
      const list = await app.as(owner).get(pathOf(name, '/domains'));
      expect([list.status, list.body]).toEqual([200, { domains: [expected] }]);
      expect(list.body.domains[0].updatedAt).toBe(list.body.domains[0].createdAt);
      const subdomain = uniqueName('sub');
      const url = `${app.url}/run/${subdomain}`;
      const response = await rename(owner, name, subdomain);
      expect([response.status, response.body]).toEqual([200, { ...expected, subdomain, url }]);
      expect(Date.parse(response.body.updatedAt)).toBeGreaterThan(Date.parse(response.body.createdAt));
      expect((await app.as(owner).get(pathOf(name, '/domains'))).body).toEqual({ domains: [response.body] });
      expect((await app.as(other).get(pathOf(name))).body.deploymentUrl).toBe(url);
      expect(await app.get(ServersService).findRunnable({ slug })).toBeNull();
      expect(await app.get(ServersService).findRunnable({ slug: subdomain })).toMatchObject({
        namespace,
        name: server,
      });
      // The same again changes nothing.
      expect((await rename(owner, name, subdomain)).body).toEqual(response.body);
      const unknown = await rename(owner, name, uniqueName('sub'), 'custom');
      expect([unknown.status, unknown.body]).toEqual([404, { error: 'Domain not found' }]);
    }
  });

  verifies('server:domain:taken', 'takes no name of others', async () => {
    const [one, two] = [await createServer(app, owner), await createServer(app, owner)];
    const theirs = await createNamespace(app, other);
    const taken = uniqueName('sub');
    expect((await rename(owner, one, taken)).status).toBe(200);
    const before = await stored(two);
    const withDashes = await createNamespace(app, other, `${uniqueName('ns')}--x`);
    for (const subdomain of [taken, theirs, `${theirs}--anything`, `${withDashes}--anything`]) {
      const response = await rename(owner, two, subdomain);
      expect([subdomain, response.status, response.body]).toEqual([subdomain, 409, notOne]);
    }
    for (const subdomain of ['', 'a', '1a', 'a-', '-a', 'A1', 'a_b', 'a.b', 'a'.repeat(64), 5, null, undefined]) {
      const response = await rename(owner, two, subdomain);
      expect([subdomain, response.status, response.body]).toEqual([subdomain, 400, notOne]);
    }
    expect(await stored(two)).toEqual(before);
    // One's own namespaces are one's own words.
    const mine = await createNamespace(app, owner);
    for (const subdomain of [`${mine}--x`, mine]) expect((await rename(owner, two, subdomain)).status).toBe(200);
    // A server that is made later under that name is reached at another address.
    expect((await app.as(owner).put(pathOf(mine))).status).toBe(201);
    const { domains } = (await app.as(owner).get(pathOf(mine, '/domains'))).body;
    expect(domains[0].subdomain).toMatch(new RegExp(`^${mine}-\\w{4}$`));
  });
});

describe('what only the owner of a server may know', () => {
  verifies('server:owner-only', 'returns the response of a missing server to all others', async () => {
    const name = await createServer(app, owner);
    await app.as(owner).put(pathOf(name, '/secrets'), { name: 'A', value: 'x' });
    const missing = `${name.split('/')[0]}/never`;
    const requests = (account: TestAccount | undefined, server: string) => [
      app.as(account).get(pathOf(server, '/secrets')),
      app.as(account).put(pathOf(server, '/secrets'), { name: 'A', value: 'y' }),
      app.as(account).delete(pathOf(server, '/secrets/A')),
      app.as(account).get(pathOf(server, '/domains')),
      app.as(account).patch(pathOf(server, '/domains/managed'), { subdomain: uniqueName('sub') }),
    ];
    const foreign = [...requests(other, name), ...requests(app.operator, name), ...requests(owner, missing)];
    for (const response of await Promise.all(foreign)) {
      expect([response.status, response.body]).toEqual([404, notFound]);
    }
    for (const response of await Promise.all(requests(undefined, name))) {
      expect([response.status, response.body]).toEqual([401, expect.objectContaining({ error: 'Unauthorized' })]);
    }
    expect((await app.as(owner).get(pathOf(name, '/secrets'))).body).toHaveLength(1);
  });
});

describe('a change of a server', () => {
  it('is published to every process, and so is its deletion', async () => {
    const sibling = await app.sibling();
    const told: unknown[] = [];
    const relay = sibling.get(PubSub);
    await relay.subscribe('servers.changed', (data) => told.push(['changed', data]));
    await relay.subscribe('servers.deleted', (data) => told.push(['deleted', data]));
    const heard: unknown[] = [];
    jest
      .spyOn(app.get(ReleaseResumptionService), 'prepareDeletion')
      .mockImplementation(
        async ({ namespace, name }) => void heard.push(await serverIdOf(app, `${namespace}/${name}`)),
      );
    const name = await createServer(app, owner);
    const [id, { slug }] = [await serverIdOf(app, name), await stored(name)];
    const subdomain = uniqueName('sub');
    await app.as(owner).put(pathOf(name, '/secrets'), { name: 'A', value: 'x' });
    await app.as(owner).patch(pathOf(name, '/domains/managed'), { subdomain });
    await app.as(owner).delete(pathOf(name));
    const expected = [
      ['changed', { id, slug }],
      ['changed', { id, slug }],
      ['changed', { id, slug: subdomain }],
      ['deleted', { id, slug: subdomain }],
    ];
    await until(() => told.length >= expected.length, 'the sibling heard of everything');
    expect(told).toEqual(expect.arrayContaining(expected));
    expect(heard).toEqual([id]);
    await sibling.close();
  });
});
