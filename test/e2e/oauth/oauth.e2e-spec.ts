import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { ConnectionSetupService } from '../../../src/modules/connections/setup/connection-setup.service.js';
import { CredentialsService } from '../../../src/modules/oauth/credentials.service.js';
import { ReleaseResumptionService } from '../../../src/modules/releases/release-resumption.service.js';
import { redact } from '../../../src/platform/telemetry/logger.js';
import { testApp } from '../../support/app.js';
import {
  startAuthorizationServer,
  type AuthorizationServer,
  type ProtectedUpstream,
} from '../../support/people/authorization-server.js';
import {
  age,
  authorize,
  beginSetup,
  newOwner,
  personAt,
  secretsOf,
  storedText,
} from '../../support/people/credentials.js';
import { createServer } from '../../support/factories.js';
import { images, uploadIcon } from '../../support/releases/icons.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { until } from '../../support/until.js';
import { serverIdOf } from '../../support/database/server-rows.js';
import { verifies } from '../../support/verifies.js';

/** Behind https, as in production: cookies are `__Host-` then. */
const PUBLIC_URL = 'https://slipway.test';

const app = testApp({ PUBLIC_URL, SETUP_RETURN_ORIGINS: 'https://app.example' });
let upstream: Upstream;
let server: AuthorizationServer;
let guarded: ProtectedUpstream;
let credentials: CredentialsService;
/** Owners that were told of. */
const told: string[] = [];

const isCallback = (url: string) => url.includes('/oauth/callback');

beforeAll(async () => {
  [upstream, server] = await Promise.all([startUpstream(), startAuthorizationServer({ asks: true })]);
  guarded = await server.protect(upstream.url);
  credentials = app.get(CredentialsService);
  jest
    .spyOn(app.get(ReleaseResumptionService), 'handleAuthorization')
    .mockImplementation(async (id) => void told.push(id));
  jest.spyOn(app.get(ConnectionSetupService), 'handleAuthorization').mockRejectedValue(new Error('Nobody is at home'));
});

afterAll(async () => {
  await Promise.all([app.close(), upstream.close(), server.close()]);
});

/** A person who opened a link, pressed its button, and stands in front of the authorization server's answer. */
async function backFromServer(link: string, answer: 'allow' | 'deny' = 'allow') {
  const person = personAt(app);
  expect(await person.open(link)).toMatchObject({ status: 200 });
  const asked = await person.press(link);
  expect(asked.html).toContain('Allow');
  const { url: callback } = await person.open(`${asked.url}?answer=${answer}`, isCallback);
  expect(isCallback(callback)).toBe(true);
  return { person, callback };
}

/** The same address with other parameters; null removes one. */
function changed(address: string, params: Record<string, string | null>): string {
  const url = new URL(address);
  for (const [name, value] of Object.entries(params)) {
    if (value === null) url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  return url.href;
}

describe('the page of a release', () => {
  verifies('oauth:page', 'names the server by its title, description and icon', async () => {
    const account = await app.account();
    const name = await createServer(app, account, { displayName: 'City <weather>', description: 'Rain & sun.' });
    await uploadIcon(app, account, name, images['image/png']);
    const owner = { kind: 'server' as const, id: await serverIdOf(app, name) };
    const { html } = await personAt(app).open(await beginSetup(app, owner, guarded.url, { label: name }));
    expect(html).toContain('<h1>Connect City &lt;weather&gt;</h1>');
    for (const part of ['Rain &amp; sun.', `<p class="soft">${name} · `]) expect(html).toContain(part);
    const [, icon = ''] = /<img src="([^"]+)"/.exec(html) ?? [];
    const image = await personAt(app).open(icon.replaceAll('&amp;', '&'));
    expect([image.status, image.headers['content-type']]).toEqual([200, 'image/png']);
  });
});

describe('an app that leads to a page', () => {
  verifies('connection:setup:return', 'has its user back after a refusal, and no other address has', async () => {
    const home = 'https://app.example/back?user=1';
    for (const kind of ['server', 'connection'] as const) {
      const link = await beginSetup(app, newOwner(kind), guarded.url);
      const person = personAt(app);
      await person.open(`${link}&returnUrl=${encodeURIComponent(home)}`);
      const asked = await person.press(link);
      const back = await person.open(`${asked.url}?answer=deny`, (url) => url.startsWith('https://app.example'));
      expect([kind, back.status, back.url]).toEqual([kind, 303, home]);
    }
    const owner = newOwner();
    const { person, callback } = await backFromServer(await beginSetup(app, owner, guarded.url), 'deny');
    const refused = await person.open(callback);
    expect(refused).toMatchObject({ status: 403, html: expect.stringContaining('refused') });
    const [, again = ''] = /<a href="([^"]+)">Try again<\/a>/.exec(refused.html) ?? [];
    const second = again.replaceAll('&amp;', '&');
    await person.open(second);
    const asked = await person.press(second);
    await person.open(`${asked.url}?answer=allow`);
    expect(await credentials.accessToken(owner, guarded.url)).toBe(server.issued.at(-1)?.accessToken);
  });
});

describe('a whole authorization', () => {
  verifies('oauth:flow', 'goes from the link to a token that opens the MCP server', async () => {
    const owner = newOwner();
    expect(await credentials.accessToken(owner, guarded.url)).toBeNull();
    const { person, callback } = await backFromServer(await beginSetup(app, owner, guarded.url));
    const done = await person.open(callback);
    expect(done).toMatchObject({ status: 200 });
    expect(done.html).toContain('continues by itself');
    expect(told.at(-1)).toBe(owner.id);

    const token = await credentials.accessToken(owner, guarded.url);
    expect(token).toBe(server.issued.at(-1)?.accessToken);
    const ping = (bearer: string | null) =>
      fetch(guarded.url, {
        method: 'POST',
        headers: {
          accept: 'application/json, text/event-stream',
          'content-type': 'application/json',
          ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }),
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
      });
    expect((await ping(null)).status).toBe(401);
    expect((await ping(token)).status).toBe(200);
  });

  it('gives the token for that address only, however it is spelled, and to that owner only', async () => {
    const owner = newOwner();
    const { person, callback } = await backFromServer(await beginSetup(app, owner, guarded.url));
    await person.open(callback);
    const { host } = new URL(guarded.url);
    expect(await credentials.accessToken(owner, `HTTP://${host}/mcp#part`)).not.toBeNull();
    for (const other of [
      `http://${host}/`,
      `http://${host}/mcp/`,
      `${guarded.url}?x`,
      'https://elsewhere.example/mcp',
    ]) {
      expect(await credentials.accessToken(owner, other)).toBeNull();
    }
    expect(await credentials.accessToken({ kind: 'connection', id: owner.id }, guarded.url)).toBeNull();
    expect(await credentials.accessToken(newOwner(), guarded.url)).toBeNull();
  });

  it('replaces the one before, and takes back the other links of its owner', async () => {
    const owner = newOwner();
    const first = await backFromServer(await beginSetup(app, owner, guarded.url));
    await first.person.open(first.callback);
    const before = await credentials.accessToken(owner, guarded.url);
    const other = await beginSetup(app, owner, guarded.url);
    const second = await backFromServer(await beginSetup(app, owner, guarded.url));
    expect(await credentials.accessToken(owner, guarded.url)).toBe(before);
    await second.person.open(second.callback);
    expect(await credentials.accessToken(owner, guarded.url)).not.toBe(before);
    expect(await personAt(app).open(other)).toMatchObject({ status: 404 });
  });

  verifies('oauth:restart', 'survives that the process that began it ends', async () => {
    const first = await app.sibling();
    const owner = newOwner();
    const link = await beginSetup(first, owner, guarded.url);
    const person = personAt(first);
    await person.open(link);
    const asked = await person.press(link);
    await first.close();
    const { url } = await person.open(`${asked.url}?answer=allow`, isCallback);
    const after = personAt(app);
    for (const [host, jar] of person.cookies) after.cookies.set(host, jar);
    expect(await after.open(url)).toMatchObject({ status: 200 });
    expect(await credentials.accessToken(owner, guarded.url)).not.toBeNull();
  });
});

describe('a link', () => {
  verifies('oauth:page', 'shows the label, the hosts of server and authorization server, and the scopes', async () => {
    const link = await beginSetup(app, newOwner(), guarded.url, { label: 'acme/<b>weather</b>' });
    const { html, headers } = await personAt(app).open(link);
    expect(html).toContain('acme/&lt;b&gt;weather&lt;/b&gt;');
    expect(html).not.toContain('<b>');
    for (const text of [new URL(guarded.url).host, new URL(server.issuer).host, 'tools:read', 'tools:write']) {
      expect(html).toContain(text);
    }
    expect(headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'referrer-policy': 'same-origin',
      'x-frame-options': 'DENY',
    });
    expect(headers['content-security-policy']).toMatch(
      /^default-src 'none'; style-src 'sha256-.+frame-ancestors 'none'$/,
    );
  });

  verifies('connection:setup:link', 'can be opened any number of times, and expires once it was used', async () => {
    const link = await beginSetup(app, newOwner(), guarded.url);
    for (let looks = 0; looks < 3; looks += 1) expect(await personAt(app).open(link)).toMatchObject({ status: 200 });
    const { person, callback } = await backFromServer(link);
    await person.open(callback);
    for (const anybody of [person, personAt(app)]) {
      const used = await anybody.open(link);
      expect(used.status).toBe(410);
      expect(used.html).toContain('was used before');
      expect(await anybody.press(link)).toMatchObject({ status: 410 });
    }
  });
});

describe('another browser', () => {
  verifies('connection:setup:browser', 'cannot press the button without having opened the page', async () => {
    const link = await beginSetup(app, newOwner(), guarded.url);
    const shown = await personAt(app).press(link);
    expect(shown.status).toBe(403);
    expect(shown.html).toContain('not the browser');
  });

  verifies('connection:setup:browser', 'can neither continue an authorization nor complete it', async () => {
    const owner = newOwner();
    const link = await beginSetup(app, owner, guarded.url);
    const { person, callback } = await backFromServer(link);
    const other = personAt(app);
    await other.open(link);
    expect(await other.press(link)).toMatchObject({ status: 410 });
    for (const stranger of [other, personAt(app)]) {
      const shown = await stranger.open(callback);
      expect(shown.status).toBe(403);
      expect(shown.html).toContain('Nothing was authorized');
    }
    expect(await credentials.accessToken(owner, guarded.url)).toBeNull();
    expect(await person.open(callback)).toMatchObject({ status: 200 });
  });

  verifies('connection:setup:browser', 'is not made to press by a page of another site', async () => {
    const link = await beginSetup(app, newOwner(), guarded.url);
    const person = personAt(app);
    await person.open(link);
    const cookie = [...(person.cookies.get('slipway.test') ?? [])].map((pair) => pair.join('=')).join('; ');
    expect(cookie).toMatch(/^__Host-slipway-setup-[0-9a-f-]{36}=/);
    for (const site of ['cross-site', 'same-site', 'none']) {
      const response = await fetch(link.replace(PUBLIC_URL, app.url), {
        method: 'POST',
        headers: { cookie, 'sec-fetch-site': site },
        redirect: 'manual',
      });
      expect(response.status).toBe(403);
    }
  });

  it('gets a cookie that scripts cannot read, and other sites cannot send along', async () => {
    const link = await beginSetup(app, newOwner(), guarded.url);
    const { headers } = await personAt(app).open(link);
    expect(String(headers['set-cookie'])).toMatch(/; Path=\/; .*HttpOnly; Secure; SameSite=Lax$/);
    expect(String(headers['set-cookie'])).not.toContain('Domain');
  });
});

describe('an authorization response', () => {
  verifies('oauth:iss', 'without iss, or with another one, is discarded completely', async () => {
    const wrong = [null, 'https://evil.example', `${server.issuer}/`, server.issuer.toUpperCase(), ''];
    for (const iss of wrong) {
      const owner = newOwner();
      const { person, callback } = await backFromServer(await beginSetup(app, owner, guarded.url));
      const exchanged = server.issued.length;
      const forged = changed(callback, { iss, error: 'EVIL_CODE', error_description: 'EVIL_TEXT' });
      const shown = await person.open(forged);
      expect(shown.status).toBe(400);
      expect(shown.html).toContain('not from the sign-in server');
      expect(shown.html).not.toMatch(/evil/i);
      expect(await person.open(callback)).toMatchObject({ status: 410 });
      expect(server.issued.length).toBe(exchanged);
      expect(await credentials.accessToken(owner, guarded.url)).toBeNull();
    }
  });

  verifies('oauth:state', 'counts once', async () => {
    const { person, callback } = await backFromServer(await beginSetup(app, newOwner(), guarded.url));
    const both = await Promise.all([person.open(callback), person.open(callback)]);
    expect(both.map(({ status }) => status).sort()).toEqual([200, 410]);
    const again = await person.open(callback);
    expect(again.status).toBe(410);
    expect(again.html).toContain('is no longer valid');
  });

  verifies('oauth:state', 'counts for ten minutes, and only with a state that was given', async () => {
    const { person, callback } = await backFromServer(await beginSetup(app, newOwner(), guarded.url));
    for (const state of [null, '', 'x', 'A'.repeat(43)]) {
      expect(await person.open(changed(callback, { state }))).toMatchObject({ status: 410 });
    }
    await app.database.query(
      `UPDATE pending_authorizations SET started_at = now() - interval '601 seconds' WHERE completed_at IS NULL`,
    );
    expect(await person.open(callback)).toMatchObject({ status: 410 });
  });

  it('is shown as text, and not at length, when it reports a problem', async () => {
    const { person, callback } = await backFromServer(await beginSetup(app, newOwner(), guarded.url));
    const text = `<img src=x onerror=alert(1)>${'long '.repeat(200)}END`;
    const shown = await person.open(changed(callback, { code: null, error: 'server_error', error_description: text }));
    expect(shown.status).toBe(502);
    expect(shown.html).toContain('&lt;img src=x');
    expect(shown.html).not.toMatch(/<img|END/);
  });

  it('with a code that was not given leaves nothing behind', async () => {
    const owner = newOwner();
    const { person, callback } = await backFromServer(await beginSetup(app, owner, guarded.url));
    const shown = await person.open(changed(callback, { code: 'made-up' }));
    expect(shown.status).toBe(502);
    expect(shown.html).toContain('invalid_grant');
    expect(await credentials.accessToken(owner, guarded.url)).toBeNull();
  });

  verifies('release:link:cancelled', 'stores no token when its request is no longer pending', async () => {
    const owner = newOwner();
    const { person, callback } = await backFromServer(await beginSetup(app, owner, guarded.url));
    jest.spyOn(app.get(ReleaseResumptionService), 'isAuthorizationPending').mockResolvedValue(false);
    expect(await person.open(callback)).toMatchObject({
      status: 410,
      html: expect.stringContaining('This request is no longer pending'),
    });
    expect(await credentials.accessToken(owner, guarded.url)).toBeNull();
  });
});

describe('what is stored', () => {
  verifies('oauth:secrets', 'holds no token, secret, verifier, state or link in clear', async () => {
    const owner = newOwner();
    const open = await beginSetup(app, newOwner(), guarded.url);
    const { person, callback } = await backFromServer(await beginSetup(app, owner, guarded.url));
    const begun = await storedText(app);
    await person.open(callback);
    const stored = begun + (await storedText(app));
    const code = new URL(callback).searchParams.get('code') ?? '';
    const cookies = [...(person.cookies.get('slipway.test')?.values() ?? [])];
    const secrets = [...secretsOf(server), code, ...cookies, open.split('/').at(-1) as string];
    expect(secrets.length).toBeGreaterThan(6);
    expect(secrets.filter((secret) => secret === '' || stored.includes(secret))).toEqual([]);
    const encoded = secrets.map((secret) => Buffer.from(secret).toString('hex'));
    expect(encoded.filter((secret) => stored.includes(secret))).toEqual([]);
  });

  verifies('oauth:secrets', 'is in no log line, when all goes well and when nothing does', async () => {
    const chatty = await app.sibling({ LOG_LEVEL: 'debug' });
    const lines: string[] = [];
    const write = (...words: unknown[]) => void lines.push(inspect(words, { depth: 10, breakLength: Infinity }));
    Logger.overrideLogger({ log: write, error: write, warn: write, debug: write, verbose: write, fatal: write });
    const links: string[] = [];
    try {
      const service = chatty.get(CredentialsService);
      const good = newOwner();
      const own = await startAuthorizationServer();
      const behind = await own.protect(upstream.url);
      await authorize(chatty, good, behind.url);
      const token = (await service.accessToken(good, behind.url)) as string;
      await service.accessToken(good, behind.url, token);
      const bad = personAt(chatty);
      links.push(await beginSetup(chatty, newOwner(), behind.url));
      await bad.open(links[0]);
      own.failTokens(500);
      expect(await bad.press(links[0])).toMatchObject({ status: 502 });
      expect(await bad.open(`${links[0]}x`)).toMatchObject({ status: 404 });
      await age(chatty, good, 'ended');
      own.failTokens(503);
      await expect(app.get(CredentialsService).accessToken(good, behind.url)).rejects.toThrow('503');
      await service.remove(good);
      await until(() => own.seen.some(({ endpoint }) => endpoint === 'revoke'), 'the tokens are revoked');
      await own.close();
      const secrets = secretsOf(own);
      expect(secrets.length).toBeGreaterThan(5);
      const written = lines.join('\n');
      expect(written).toContain('a token could not be refreshed');
      expect(written).toContain('answered 502');
      expect(secrets.filter((secret) => written.includes(secret))).toEqual([]);
      // The request log names paths, and the path is the link: blanked as every line is before it is written.
      expect(written).toContain('/setup/');
      expect(links.filter((link) => redact(written).includes(link.split('/').at(-1) as string))).toEqual([]);
    } finally {
      Logger.overrideLogger(false);
      await chatty.close();
    }
  });

  verifies('oauth:owner-gone', 'is deleted with its server and its connection', async () => {
    const account = await app.account();
    const name = await createServer(app, account);
    const namespace = name.split('/')[0];
    await app.as(account).put(`/connect/${namespace}/c1`, { mcpUrl: upstream.url }).expect(201);
    const [[{ id: serverId }], [{ id: connectionId }]] = await Promise.all([
      app.database.query('SELECT servers.id FROM servers JOIN namespaces n ON n.id = namespace_id WHERE n.name = $1', [
        namespace,
      ]),
      app.database.query(
        'SELECT connections.id FROM connections JOIN namespaces n ON n.id = namespace_id WHERE n.name = $1',
        [namespace],
      ),
    ]);
    const owners = [
      { kind: 'server', id: serverId },
      { kind: 'connection', id: connectionId },
    ] as const;
    for (const owner of owners) {
      const { person, callback } = await backFromServer(await beginSetup(app, owner, guarded.url));
      await person.open(callback);
      await beginSetup(app, owner, guarded.url);
    }
    const rows = () =>
      app.database.query(
        `SELECT owner_kind FROM upstream_credentials WHERE owner_id = ANY($1)
          UNION ALL SELECT owner_kind FROM pending_authorizations WHERE owner_id = ANY($1) AND completed_at IS NULL`,
        [[serverId, connectionId]],
      );
    expect(await rows()).toHaveLength(4);
    await app
      .as(account)
      .delete(`/servers/${encodeURIComponent(name)}`)
      .expect(({ status }) => expect(status).toBeLessThan(300));
    expect(await rows()).toEqual([{ owner_kind: 'connection' }, { owner_kind: 'connection' }]);
    await app
      .as(account)
      .delete(`/namespaces/${namespace}`)
      .expect(({ status }) => expect(status).toBeLessThan(300));
    expect(await rows()).toEqual([]);
  });

  verifies('oauth:owner-gone', 'is not stored again when the response arrives after the deletion', async () => {
    const account = await app.account();
    const name = await createServer(app, account);
    const [{ id }] = await app.database.query(
      `SELECT servers.id FROM servers JOIN namespaces n ON n.id = namespace_id WHERE n.name || '/' || servers.name = $1`,
      [name],
    );
    const { person, callback } = await backFromServer(await beginSetup(app, { kind: 'server', id }, guarded.url));
    server.holdTokens();
    const completing = person.open(callback);
    await until(() => server.held === 1, 'the exchange waits for its answer');
    await app
      .as(account)
      .delete(`/servers/${encodeURIComponent(name)}`)
      .expect(({ status }) => expect(status).toBeLessThan(300));
    server.releaseTokens();
    expect(await completing).toMatchObject({ status: 404 });
    expect(await app.database.query('SELECT 1 FROM upstream_credentials WHERE owner_id = $1', [id])).toEqual([]);
  });

  verifies('oauth:remove', 'is revoked when its server is deleted', async () => {
    const account = await app.account();
    const name = await createServer(app, account);
    const id = await serverIdOf(app, name);
    const { person, callback } = await backFromServer(await beginSetup(app, { kind: 'server', id }, guarded.url));
    expect(await person.open(callback)).toMatchObject({ status: 200 });
    const { refreshToken } = server.issued.at(-1) ?? {};
    expect((await app.as(account).delete(`/servers/${encodeURIComponent(name)}`)).status).toBe(200);
    await until(
      () => server.seen.some(({ endpoint, params }) => endpoint === 'revoke' && params.get('token') === refreshToken),
      'the token is revoked',
    );
  });

  verifies('oauth:remove', 'is revoked when it is removed, and its links are taken back', async () => {
    const owner = newOwner();
    const { person, callback } = await backFromServer(await beginSetup(app, owner, guarded.url));
    await person.open(callback);
    const link = await beginSetup(app, owner, guarded.url);
    const { refreshToken } = server.issued.at(-1) ?? {};
    await credentials.remove(owner);
    expect(await credentials.accessToken(owner, guarded.url)).toBeNull();
    expect(await personAt(app).open(link)).toMatchObject({ status: 404 });
    const revoked = () =>
      server.seen.filter(({ endpoint }) => endpoint === 'revoke').map(({ params }) => params.get('token'));
    await until(() => revoked().includes(refreshToken ?? '?'), 'the authorization server is told');
    await credentials.remove(owner);
  });
});
