import { createServer as createHttpServer, type Server, type ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import supertest from 'supertest';
import { Egress } from '../../../src/platform/egress/egress.js';
import { AddressPolicy, parseEgressAllow } from '../../../src/platform/egress/address-policy.js';
import { fetchIcon } from '../../../src/modules/servers/icons/icon-fetch.js';
import { ServerIconsService } from '../../../src/modules/servers/icons/server-icons.service.js';
import { SignedUrls } from '../../../src/platform/http/signed-urls.js';
import { testAccount, testApp, uniqueName, type TestAccount } from '../../support/app.js';
import { createNamespace, createServer } from '../../support/factories.js';
import { images, uploadIcon } from '../../support/releases/icons.js';
import { pathOf, serverIdOf } from '../../support/database/server-rows.js';
import { listen, shut } from '../../support/upstream/upstream-net.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const MB = 1024 * 1024;
const png = images['image/png'];
const noIcon = { error: 'Icon not found' };
const notOne = { error: expect.stringMatching(/\S/) };
const notMine = { error: "Forbidden: You don't own this server" };

const app = testApp();
const owner = testAccount(app);
const other = testAccount(app);

function get(path: string, headers: Record<string, string> = {}): supertest.Test {
  return supertest(app.url).get(path).set(headers).buffer(true).parse(binary);
}

/** Keeps a body as it came. */
function binary(response: supertest.Response, done: (error: Error | null, body: Buffer) => void): void {
  const chunks: Buffer[] = [];
  response.on('data', (chunk: Buffer) => chunks.push(chunk));
  response.on('end', () => done(null, Buffer.concat(chunks)));
}

function getIcon(name: string, account: TestAccount = other, headers = {}): supertest.Test {
  return get(pathOf(name, '/icon'), { authorization: `Bearer ${account.key}`, ...headers });
}

async function iconUrlOf(name: string): Promise<string | null> {
  return (await app.as(other).get(pathOf(name))).body.iconUrl;
}

describe('an uploaded icon', () => {
  verifies(
    ['icon:upload:kept', 'icon:get:image', 'icon:harmless'],
    'is served as what its bytes are, whatever it was called',
    async () => {
      const name = await createServer(app, owner);
      for (const [type, bytes] of Object.entries(images)) {
        const field = uniqueName('field');
        const answer = await uploadIcon(app, owner, name, bytes, {
          field,
          filename: 'x.html',
          contentType: 'text/html',
        });
        expect([type, answer.status, answer.body]).toEqual([type, 200, { iconUrl: expect.any(String) }]);
        const response = await getIcon(name);
        expect([response.status, response.headers['content-type']]).toEqual([200, type]);
        expect(response.body).toEqual(bytes);
        expect(response.headers['x-content-type-options']).toBe('nosniff');
        expect(response.headers['content-security-policy']).toContain("sandbox; default-src 'none'");
      }
      const largest = Buffer.concat([png, Buffer.alloc(MB - png.length)]);
      expect((await uploadIcon(app, owner, name, largest)).status).toBe(200);
      expect((await getIcon(name)).body).toEqual(largest);
    },
  );

  verifies('icon:upload:kept', 'belongs to its namespace-only server alone', async () => {
    const namespace = await createNamespace(app, owner);
    const [alone, within] = [
      await createServer(app, owner, { namespace, server: '' }),
      await createServer(app, owner, { namespace, server: 'within' }),
    ];
    expect((await uploadIcon(app, owner, alone, png)).status).toBe(200);
    expect((await getIcon(alone)).body).toEqual(png);
    expect((await getIcon(within)).status).toBe(404);
    expect(await iconUrlOf(alone)).toContain(`/servers/${namespace}/icon?`);
  });

  verifies(['server:detail:icon-url', 'link:signed'], 'has a URL that opens it without a key', async () => {
    const name = await createServer(app, owner);
    const { body } = await uploadIcon(app, owner, name, png);
    const url = await iconUrlOf(name);
    expect(url).toBe(body.iconUrl);
    const { servers } = (await app.as(owner).get(`/servers?qualifiedName=${encodeURIComponent(name)}`)).body;
    expect(servers[0].iconUrl).toBe(url);
    const path = url!.slice(app.url.length);
    expect(url).toBe(`${app.url}${path}`);
    expect((await get(path)).body).toEqual(png);
    expect((await supertest(app.url).head(path)).status).toBe(200);
    const lifeMs = Number(new URL(url!).searchParams.get('expires')) * 1_000 - Date.now();
    expect(lifeMs).toBeGreaterThanOrEqual(24 * 3_600_000 - 5_000);
    // The unencoded spelling is the same path.
    expect((await get(path.replace('%2F', '/'))).status).toBe(200);
  });

  verifies(['icon:harmless'], 'is not sent again to a client that has it', async () => {
    const name = await createServer(app, owner);
    await uploadIcon(app, owner, name, png);
    const { etag, 'cache-control': cache } = (await getIcon(name)).headers;
    expect([etag, cache]).toEqual([expect.stringMatching(/^"[0-9a-f]{64}"$/), expect.stringMatching(/max-age=\d+/)]);
    for (const tags of [etag, `W/${etag}`, `"other", ${etag}`]) {
      const again = await getIcon(name, other, { 'if-none-match': tags });
      expect([again.status, again.body.length, again.headers.etag]).toEqual([304, 0, etag]);
    }
    await uploadIcon(app, owner, name, images['image/gif']);
    const changed = await getIcon(name, other, { 'if-none-match': etag });
    expect([changed.status, changed.body]).toEqual([200, images['image/gif']]);
  });

  verifies('icon:get:too-large', 'over 1 MB is refused, and the old one stays', async () => {
    const name = await createServer(app, owner);
    await uploadIcon(app, owner, name, png);
    for (const bytes of [MB + 1, 3 * MB]) {
      const response = await uploadIcon(app, owner, name, Buffer.concat([png, Buffer.alloc(bytes - png.length)]));
      expect([response.status, response.body]).toEqual([413, { error: 'File too large' }]);
    }
    expect((await getIcon(name)).body).toEqual(png);
  });

  verifies('icon:upload:refused', 'must be one image in a form', async () => {
    const name = await createServer(app, owner);
    await uploadIcon(app, owner, name, png);
    const none = ['', 'GIF', '<html><svg></svg></html>', '<!-- <svg> -->', '<svgx>', '{}', 'BM______', '%PDF-1.7'];
    for (const text of none) {
      const response = await uploadIcon(app, owner, name, Buffer.from(text), { contentType: 'image/png' });
      expect([text, response.status, response.body]).toEqual([text, 400, notOne]);
    }
    const form = () => supertest(app.url).put(pathOf(name, '/icon')).set('authorization', `Bearer ${owner.key}`);
    const forms = [
      form().attach('a', png, 'a.png').attach('b', images['image/gif'], 'b.gif'),
      form().field('note', 'text only'),
      form().send({ file: 'x' }),
      form(),
      form().set('content-type', 'multipart/form-data').send('x'),
      form().set('content-type', 'multipart/form-data; boundary=x').send('--x\r\n'),
    ];
    for (const one of forms) {
      const response = await one;
      expect([response.status, response.body]).toEqual([400, notOne]);
    }
    expect((await getIcon(name)).body).toEqual(png);
  });

  verifies('server:update:foreign', 'is the owner’s alone to change', async () => {
    const name = await createServer(app, owner);
    await uploadIcon(app, owner, name, png);
    for (const account of [other, app.operator]) {
      const put = await uploadIcon(app, account, name, images['image/gif']);
      const gone = await app.as(account).delete(pathOf(name, '/icon'));
      for (const { status, body } of [put, gone]) expect([status, body]).toEqual([403, notMine]);
    }
    const [namespace = ''] = name.split('/');
    for (const missing of [`${uniqueName('never')}/weather`, `${namespace}/never`]) {
      const put = await uploadIcon(app, owner, missing, png);
      const gone = await app.as(owner).delete(pathOf(missing, '/icon'));
      const read = await app.as(owner).get(pathOf(missing, '/icon'));
      for (const { status, body } of [put, gone, read])
        expect([status, body]).toEqual([404, expect.objectContaining({ error: 'Server not found' })]);
    }
    expect((await getIcon(name)).body).toEqual(png);
  });

  verifies(['icon:delete', 'icon:get:none'], 'is missing after it was removed', async () => {
    const name = await createServer(app, owner);
    const path = pathOf(name, '/icon');
    expect([(await app.as(owner).get(path)).status, (await app.as(owner).get(path)).body]).toEqual([404, noIcon]);
    expect((await app.as(owner).delete(path)).body).toEqual(noIcon);
    await uploadIcon(app, owner, name, png);
    const removed = await app.as(owner).delete(path);
    expect([removed.status, removed.body]).toEqual([200, { success: true }]);
    expect((await app.as(owner).get(path)).body).toEqual(noIcon);
    expect(await iconUrlOf(name)).toBeNull();
  });
});

describe('a signed link', () => {
  verifies('link:signed', 'opens nothing but its own path, as it was given, until its time', async () => {
    const [name, secret] = [await createServer(app, owner), await createServer(app, owner)];
    for (const one of [name, secret]) await uploadIcon(app, owner, one, png);
    const url = new URL((await iconUrlOf(name))!);
    const { expires = '', signature = '' } = Object.fromEntries(url.searchParams);
    const query = (values: Record<string, string>) => `?${new URLSearchParams(values).toString()}`;
    const expired = String(Math.floor(Date.now() / 1000) - 10);
    const links = new SignedUrls(app.env);
    const past = new URL(links.sign(pathOf(name, '/icon'), -200_000)).search;
    const opened = [
      pathOf(secret, '/icon') + url.search,
      pathOf(name, '/icon') +
        query({ expires, signature: `${signature.slice(0, -1)}${signature.endsWith('A') ? 'B' : 'A'}` }),
      pathOf(name, '/icon') + query({ expires: `${Number(expires) + 1}`, signature }),
      pathOf(name, '/icon') + query({ expires: expired, signature }),
      pathOf(name, '/icon') + query({ expires }),
      pathOf(name, '/icon') + query({ signature }),
      pathOf(name, '/icon') + past,
      `${pathOf(name, '/icon')}?expires=${expires}&expires=${expires}&signature=${signature}`,
    ];
    for (const path of opened) {
      const response = await supertest(app.url).get(path);
      expect([path, response.status, response.body]).toEqual([path, 403, notOne]);
    }
    // Routes that take no links ask for a key.
    expect((await supertest(app.url).get(pathOf(name) + url.search)).status).toBe(401);
    expect((await supertest(app.url).delete(pathOf(name, '/icon') + url.search)).status).toBe(401);
    expect((await get(url.pathname + url.search)).status).toBe(200);
  });
});

describe('an icon the server names', () => {
  let host: Server;
  let base: string;
  let held: ServerResponse | undefined;
  let asked: string[];

  beforeAll(async () => {
    host = createHttpServer((request, response) => {
      const path = request.url ?? '';
      asked.push(path);
      const hops = /^\/hop\/(\d+)$/.exec(path)?.[1];
      if (path === '/icon') response.end(png);
      else if (path === '/held') held = response;
      else if (path === '/page') response.end('<html></html>');
      else if (path === '/large') response.end(Buffer.concat([png, Buffer.alloc(MB)]));
      else if (path === '/endless') {
        response.write(png);
        const pour = () => !response.closed && response.write(Buffer.alloc(256 * 1024), () => setImmediate(pour));
        pour();
      } else if (hops !== undefined) {
        response.writeHead(302, { location: hops === '1' ? '/icon' : `/hop/${Number(hops) - 1}` }).end();
      } else if (path === '/inside') response.writeHead(302, { location: 'http://10.0.0.1/icon' }).end();
      else response.writeHead(404).end();
    });
    base = `http://127.0.0.1:${await listen(host)}`;
    asked = [];
  });
  afterAll(() => shut(host));

  const named = (...paths: string[]) => paths.map((path) => ({ src: path.startsWith('/') ? base + path : path }));

  verifies('icon:upload:wins', 'is fetched from its URL or read from it, within bounds', async () => {
    const egress = new Egress(new AddressPolicy(parseEgressAllow('loopback')));
    const svg = images['image/svg+xml'].toString('utf8').slice(1);
    const dataUrl = `data:image/png;base64,${png.toString('base64')}`;
    const cases: [string, Buffer | 'too_large' | null][] = [
      [`${base}/icon`, png],
      [dataUrl, png],
      [`data:image/svg+xml,${encodeURIComponent(svg)}`, Buffer.from(svg)],
      [`${base}/page`, null],
      [`${base}/hop/3`, png],
      [`${base}/hop/4`, null],
      [`${base}/inside`, null],
      [`${base}/endless`, 'too_large'],
      [`data:image/png;base64,${Buffer.alloc(MB + 3).toString('base64')}`, 'too_large'],
      ['file:///etc/passwd', null],
      ['data:,%zz', null],
      ['no url', null],
      ['http://10.0.0.1/icon', null],
    ];
    for (const [src, expected] of cases) {
      const icon = await fetchIcon(egress, src);
      const got = icon !== null && typeof icon === 'object' ? icon.bytes : icon;
      expect([src, got]).toEqual([src, expected]);
    }
    await egress.close();
  });

  verifies(
    'icon:from-url',
    'is fetched from the URL that the owner sets, and refused when it is not an image',
    async () => {
      const name = await createServer(app, owner);
      const set = (path: string) => app.as(owner).patch(pathOf(name), { iconUrl: `${base}${path}` });
      expect((await set('/icon')).status).toBe(200);
      expect(await iconUrlOf(name)).toBe(`${base}/icon`);
      expect((await getIcon(name)).body).toEqual(png);
      await app.get(ServerIconsService).adopt(await serverIdOf(app, name), undefined);
      expect((await getIcon(name)).body).toEqual(png);
      for (const [path, status] of [
        ['/page', 400],
        ['/none', 400],
        ['/large', 413],
      ] as const) {
        expect([path, (await set(path)).status]).toEqual([path, status]);
      }
      expect(await iconUrlOf(name)).toBe(`${base}/icon`);
    },
  );

  verifies('icon:upload:wins', 'has lower precedence than the one of the owner', async () => {
    const name = await createServer(app, owner);
    const id = await serverIdOf(app, name);
    const icons = app.get(ServerIconsService);
    await icons.adopt(id, [null, 7, { src: 7 }, ...named('/icon')]);
    expect((await getIcon(name)).body).toEqual(png);
    expect(await iconUrlOf(name)).toContain('/icon?expires=');
    const elsewhere = named('/icon')[0].src;
    await app.as(owner).patch(pathOf(name), { iconUrl: elsewhere });
    expect(await iconUrlOf(name)).toBe(elsewhere);
    await uploadIcon(app, owner, name, images['image/gif']);
    expect(await iconUrlOf(name)).toContain('/icon?expires=');
    await icons.adopt(id, named('/icon'));
    await icons.adopt(id, undefined);
    expect((await getIcon(name)).body).toEqual(images['image/gif']);
    await app.as(owner).delete(pathOf(name, '/icon'));
    expect(await iconUrlOf(name)).toBe(elsewhere);
    await app.as(owner).patch(pathOf(name), { iconUrl: null });
    expect(await iconUrlOf(name)).toBeNull();
    await icons.adopt(id, named('/icon'));
    await icons.adopt(id, undefined);
    expect((await getIcon(name)).status).toBe(404);
  });

  verifies('icon:upload:wins', 'does not replace one that is uploaded while it is fetched', async () => {
    const name = await createServer(app, owner);
    const adopting = app.get(ServerIconsService).adopt(await serverIdOf(app, name), named('/held'));
    await until(() => held, 'the icon is asked for');
    await uploadIcon(app, owner, name, images['image/gif']);
    held?.end(png);
    await adopting;
    expect((await getIcon(name)).body).toEqual(images['image/gif']);
  });

  verifies('icon:upload:wins', 'does not remove one that is uploaded while it cannot be fetched', async () => {
    const name = await createServer(app, owner);
    const before = held;
    const adopting = app.get(ServerIconsService).adopt(await serverIdOf(app, name), named('/held'));
    await until(() => held !== before, 'the icon is asked for');
    await uploadIcon(app, owner, name, images['image/gif']);
    held?.destroy();
    await adopting;
    expect((await getIcon(name)).body).toEqual(images['image/gif']);
  });

  verifies('icon:get:too-large', 'returns 413 while it is too large, until there is another', async () => {
    const name = await createServer(app, owner);
    const icons = app.get(ServerIconsService);
    await icons.adopt(await serverIdOf(app, name), named('/large'));
    const response = await app.as(other).get(pathOf(name, '/icon'));
    expect([response.status, response.body]).toEqual([413, { error: 'File too large' }]);
    expect(await iconUrlOf(name)).toBeNull();
    await uploadIcon(app, owner, name, png);
    expect((await getIcon(name)).status).toBe(200);
  });

  verifies(
    'icon:candidates',
    'is the first image of those that are named, PNG first, and outlasts an outage',
    async () => {
      const name = await createServer(app, owner);
      const id = await serverIdOf(app, name);
      const icons = app.get(ServerIconsService);
      const [{ src }] = named('/icon');
      const ico = Buffer.concat([Buffer.from([0, 0, 1, 0, 1, 0]), Buffer.alloc(16), png]);
      ico.writeUInt32LE(png.length, 14);
      ico.writeUInt32LE(22, 18);
      const data = (bytes: Buffer) => `data:image/x-icon;base64,${bytes.toString('base64')}`;
      const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="100%"/>';
      const bad = [
        'javascript:1',
        '/none',
        'https://',
        'data:,x',
        named('/large')[0].src,
        'data:image/avif;base64,AAAA',
      ];
      const rows: [icons: object[], base: string | null, image: Buffer][] = [
        [[...bad.map((one) => ({ src: one })), { src, mimeType: 'image/png' }], null, png],
        [[{ src: data(images['image/gif']) }, { src, sizes: ['48x48'] }], null, png],
        [[{ src: data(images['image/gif']) }, { src: 'icon', mimeType: 'image/png' }], new URL('./mcp', src).href, png],
        [[{ src: data(ico) }], null, png],
        [[{ src: `data:image/svg+xml,${svg}` }], null, Buffer.from(svg)],
      ];
      for (const [entries, base, image] of rows) {
        await icons.adopt(id, undefined);
        await icons.adopt(id, entries, base);
        expect((await getIcon(name)).body).toEqual(image);
      }
      await icons.adopt(id, [{ src: 'http://127.0.0.1:9/none' }]);
      expect((await getIcon(name)).status).toBe(200);
    },
  );

  it('is not stored for a deleted server', async () => {
    const name = await createServer(app, owner);
    const id = await serverIdOf(app, name);
    await app.as(owner).delete(pathOf(name));
    await app.get(ServerIconsService).adopt(id, named('/icon'));
    expect(await app.database.query('SELECT 1 FROM server_icons WHERE server_id = $1', [id])).toEqual([]);
  });
});
