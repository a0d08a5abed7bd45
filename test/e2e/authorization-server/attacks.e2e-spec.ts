/*
 * Attacks on logins by URL: each test fails without its defence. Redirects, mix-up, codes, PKCE, resources, what a token opens,
 * forms, frames, sessions, enumeration, forged hosts, machine clients, registrations. `logins.e2e-spec.ts` has those on refresh
 * tokens and on the end of a login, `login-processes.e2e-spec.ts` those with two processes.
 */
import { connect } from 'node:net';
import { beforeAll, describe, expect } from '@jest/globals';
import supertest from 'supertest';
import { DocumentEgress } from '../../../src/modules/authorization-server/client-documents.js';
import { EgressRefusedError } from '../../../src/platform/egress/egress.errors.js';
import { BodyBudget } from '../../../src/platform/http/body/body-budget.js';
import { startApp, testAccount, testApp, uniqueName } from '../../support/app.js';
import { createConnection } from '../../support/factories.js';
import { openTunnel } from '../../support/mcp/uplink-client.js';
import { LoginClient } from '../../support/oauth-clients/login.js';
import {
  formTokenIn,
  openBrowser,
  personAt,
  SESSION_COOKIE,
  signedInBrowser,
  type Answer,
  type BrowserSession,
} from '../../support/people/browser-session.js';
import { externalServer, type SeededServer } from '../../support/releases/current-releases.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const REDIRECT = 'https://app.example/callback';
const UNKNOWN_HOST = 'evil.example';

const app = testApp();
const person = testAccount(app);
const other = testAccount(app);
let browser: BrowserSession;
let upstream: Upstream;
let server: SeededServer;
let namespace: string;
let path: string;
let resource: string;

beforeAll(async () => {
  upstream = await startUpstream();
  ({ path, namespace } = await createConnection(app, person, { mcpUrl: upstream.url }));
  server = await externalServer(app, person, upstream.url);
  resource = `${app.url}${path}/mcp`;
  browser = await signedInBrowser(app, person);
});

/** A client that has registered. */
async function registered(at = resource, redirectUri = REDIRECT, body: object = {}): Promise<LoginClient> {
  const client = new LoginClient(app, at, redirectUri);
  expect((await client.register(body)).status).toBe(201);
  return client;
}

/** The page of a new authorization in a browser. @returns its path */
async function consentPath(client: LoginClient, of = browser, changes = {}): Promise<string> {
  const begun = await of.get(client.authorizePath(changes));
  expect(begun.status).toBe(303);
  expect(begun.headers.location).toMatch(/^\/consent\//);
  return String(begun.headers.location);
}

/** A code of a login that a person allowed. */
async function codeOf(client: LoginClient, changes: Record<string, string> = {}): Promise<string> {
  const back = await client.authorize(browser, { answer: 'allow' }, changes);
  return back.searchParams.get('code') ?? '';
}

/** A POST to an MCP endpoint or another path. */
function call(at: string, bearer?: string): Promise<Response> {
  return fetch(app.url + at, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
  });
}

async function statusOf(at: string, bearer?: string): Promise<number> {
  const response = await call(at, bearer);
  await response.text();
  return response.status;
}

/** Posts a form or a text to a path of the authorization server. */
async function send(
  at: string,
  body: URLSearchParams | string,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: Record<string, string>; headers: Headers }> {
  const response = await fetch(app.url + at, { method: 'POST', headers, body });
  const text = await response.text();
  return {
    status: response.status,
    body: JSON.parse(text || '{}') as Record<string, string>,
    headers: response.headers,
  };
}

/** The parts of an answer that must not differ, with names taken out. Times, ids and counts are left out. */
function shown({ status, headers, text }: { status: number; headers: object; text: string }, names: string[]) {
  const passing = ['date', 'x-request-id', 'ratelimit', 'ratelimit-policy', 'set-cookie', 'etag'];
  const hide = (value: string) => names.reduce((hidden, name) => hidden.replaceAll(name, 'NAME'), value);
  const kept = Object.entries(headers as Record<string, string>).filter(([name]) => !passing.includes(name));
  return hide(JSON.stringify({ status, headers: kept, text: text.replace(/value="[^"]*"/g, '') }))
    .replace(/\/consent\/[\w-]+/g, '/consent/UID')
    .replace(/"content-length","\d+"/, '')
    .replace(/"requestId":"[^"]*"/, '');
}

describe('the redirect of an authorization', () => {
  verifies(
    'login:redirect',
    'leads to a registered address alone: to any other one there is a page and no redirect',
    async () => {
      const client = await registered();
      for (const redirect_uri of [
        'https://evil.example/callback',
        `${REDIRECT}.evil.example`,
        `${REDIRECT}/more`,
        `${REDIRECT}?more=1`,
        'https://app.example/',
        'https://app.example/callback/../evil',
        'https://app.example:444/callback',
        'http://app.example/callback',
        'https://app.example@evil.example/callback',
        'https://evil.example\\@app.example/callback',
        'javascript:alert(1)',
      ]) {
        const { status, headers, text } = await browser.get(client.authorizePath({ redirect_uri }));
        expect([redirect_uri, status, headers.location]).toEqual([redirect_uri, 400, undefined]);
        expect(text).toContain('This login cannot go on');
      }
      const unknown = await browser.get(client.authorizePath({ client_id: 'nobody' }));
      expect([unknown.status, unknown.headers.location]).toEqual([400, undefined]);
    },
  );

  verifies('login:redirect', 'is never chosen by two values of one parameter', async () => {
    const client = await registered();
    const { headers } = await browser.get(
      `${client.authorizePath()}&redirect_uri=${encodeURIComponent('https://evil.example/')}`,
    );
    const back = new URL(String(headers.location));
    expect([back.origin, back.searchParams.get('error')]).toEqual(['https://app.example', 'invalid_request']);
  });

  verifies('login:redirect', 'may change port and name of loopback, and not its path', async () => {
    const client = await registered(resource, 'http://localhost:1234/callback');
    await consentPath(client, browser, { redirect_uri: 'http://127.0.0.1:999/callback' });
    const refused = await browser.get(client.authorizePath({ redirect_uri: 'http://127.0.0.1:999/other' }));
    expect(refused.status).toBe(400);
  });

  verifies('login:redirect', 'is the query alone: no form and no fragment', async () => {
    const client = await registered();
    for (const response_mode of ['form_post', 'fragment', 'web_message', 'jwt']) {
      const back = await client.authorize(browser, { answer: 'allow' }, { response_mode });
      expect([back.origin + back.pathname, back.hash]).toEqual([REDIRECT, '']);
      expect(back.searchParams.get('code')).not.toBeNull();
    }
  });

  verifies('login:redirect', 'leads to Slipway pages alone after the sign-in in between', async () => {
    const client = await registered();
    const page = await consentPath(client);
    for (const next of [
      `https://${UNKNOWN_HOST}${page}`,
      `//${UNKNOWN_HOST}${page}`,
      `/\\${UNKNOWN_HOST}`,
      '/authorize?x',
    ]) {
      const { status, headers } = await browser.get(`/login?next=${encodeURIComponent(next)}`);
      expect([status, headers.location]).toEqual([303, './ui/']);
    }
    expect((await browser.get(`/login?next=${encodeURIComponent(page)}`)).headers.location).toBe(`.${page}`);
  });

  verifies('login:issuer', 'names the issuer in every response, including errors', async () => {
    const client = await registered();
    const allowed = await client.authorize(browser);
    const denied = await client.authorize(browser, { answer: 'deny' });
    const wrong = async (changes: Record<string, string | undefined>) =>
      new URL(String((await browser.get(client.authorizePath(changes))).headers.location));
    const answers = [
      [allowed, null],
      [denied, 'access_denied'],
      [await wrong({ response_type: 'token' }), 'unsupported_response_type'],
      [await wrong({ prompt: 'none' }), expect.stringMatching(/_required$/)],
      [await wrong({ code_challenge: undefined }), 'invalid_request'],
      [await wrong({ resource: undefined }), 'invalid_target'],
    ] as const;
    for (const [back, error] of answers) {
      const parameters = back.hash === '' ? back.searchParams : new URLSearchParams(back.hash.slice(1));
      expect([parameters.get('iss'), parameters.get('state')]).toEqual([app.url, client.state]);
      expect(parameters.get('error')).toEqual(error);
    }
  });
});

describe('a code', () => {
  verifies('login:code-once', 'works once, and its second use revokes the tokens of the first', async () => {
    const client = await registered();
    const code = await codeOf(client);
    const first = await client.redeem(code);
    expect(first.status).toBe(200);
    expect(await statusOf(`${path}/mcp`, first.body.access_token)).toBe(200);
    expect(await client.redeem(code)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
    expect(await statusOf(`${path}/mcp`, first.body.access_token)).toBe(401);
    expect(await client.refresh(first.body.refresh_token)).toMatchObject({
      status: 400,
      body: { error: 'invalid_grant' },
    });
  });

  verifies('login:code-once', 'works once when it is used many times at the same moment', async () => {
    for (let round = 0; round < 5; round += 1) {
      const client = await registered();
      const code = await codeOf(client);
      const answers = await Promise.all(Array.from({ length: 6 }, () => client.redeem(code)));
      expect(answers.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(1);
      expect(answers.map(({ status }) => status).filter((status) => status !== 200 && status !== 400)).toEqual([]);
    }
  });

  verifies('login:code-once', 'is of its client and its redirect address', async () => {
    const client = await registered();
    const foreign = await registered();
    const code = await codeOf(client);
    for (const changes of [{ client_id: foreign.id }, { redirect_uri: `${REDIRECT}/x` }]) {
      const { status, body } = await client.redeem(code, changes);
      expect([status, body]).toEqual([400, expect.objectContaining({ error: expect.stringMatching(/^invalid_/) })]);
    }
    expect((await client.redeem(code)).status).toBe(200);
  });

  verifies('login:pkce', 'needs the verifier of its S256 challenge', async () => {
    const client = await registered();
    for (const changes of [
      { code_challenge: undefined },
      { code_challenge: undefined, code_challenge_method: undefined },
      { code_challenge_method: 'plain' },
      { code_challenge_method: undefined },
    ]) {
      const { status, headers } = await browser.get(client.authorizePath(changes));
      expect(status).toBe(303);
      expect(String(headers.location)).toContain('error=invalid_request');
    }
    const code = await codeOf(client);
    for (const code_verifier of ['wrong'.repeat(10), undefined, '']) {
      expect(await client.redeem(code, { code_verifier })).toMatchObject({
        status: 400,
        body: { error: 'invalid_grant' },
      });
    }
    expect((await client.redeem(code)).status).toBe(200);
  });
});

describe('the resource of a login', () => {
  verifies(
    'login:resource',
    'is one MCP endpoint of this service; anything else is invalid_target in words',
    async () => {
      const client = await registered();
      const answer = async (changes: Record<string, string | undefined>, more = '') => {
        const { headers } = await browser.get(client.authorizePath(changes) + more);
        const { searchParams } = new URL(String(headers.location), app.url);
        return [searchParams.get('error'), searchParams.get('error_description')];
      };
      const words = expect.stringMatching(/address of an MCP endpoint of this service|absolute URI/);
      for (const foreign of [
        `https://${UNKNOWN_HOST}${path}/mcp`,
        app.url,
        `${app.url}/accounts/me`,
        `${app.url}/run/${server.slug}/below`,
        `${app.url.replace('127.0.0.1', '127.0.0.1.evil.example')}${path}/mcp`,
        'mcp',
        undefined,
      ]) {
        expect([foreign, ...(await answer({ resource: foreign }))]).toEqual([foreign, 'invalid_target', words]);
      }
      const second = `&resource=${encodeURIComponent(`${app.url}/run/${server.slug}`)}`;
      expect(await answer({}, second)).toEqual(['invalid_target', expect.stringContaining('one resource')]);
      // The same one twice is one, however it is spelled.
      for (const same of [resource, `${resource}/`]) {
        expect(await answer({}, `&resource=${encodeURIComponent(same)}`)).toEqual([null, null]);
      }
    },
  );

  verifies('login:resource', 'is the same at the token endpoint, where it may be left out', async () => {
    const client = await registered();
    for (const foreign of [`https://${UNKNOWN_HOST}/mcp`, `${app.url}/run/${server.slug}`]) {
      const code = await codeOf(client);
      expect(await client.redeem(code, { resource: foreign })).toMatchObject({
        status: 400,
        body: { error: 'invalid_target', error_description: expect.stringMatching(/resource/) },
      });
    }
    expect((await client.redeem(await codeOf(client), { resource: undefined })).status).toBe(200);
    const { body } = await client.redeem(await codeOf(client, { resource: `${resource}/` }), {
      resource: `${resource}/`,
    });
    expect(await statusOf(`${path}/mcp`, body.access_token)).toBe(200);
    const foreign = await client.refresh(body.refresh_token, { resource: `${app.url}/run/${server.slug}` });
    expect(foreign).toMatchObject({ status: 400, body: { error: 'invalid_target' } });
  });
});

describe('an access token', () => {
  let token: string;
  beforeAll(async () => {
    ({ access_token: token } = await (await registered()).login(browser));
  });

  verifies('login:token', 'opens its MCP endpoint and nothing else', async () => {
    const { path: second } = await createConnection(app, person, { mcpUrl: upstream.url }, { namespace });
    expect(await statusOf(`${path}/mcp`, token)).toBe(200);
    expect(await statusOf(`${path}/mcp/`, token)).toBe(200);
    for (const at of [
      `${second}/mcp`,
      `/connect/${namespace}/.mcp`,
      `/connect/${namespace}/missing/mcp`,
      `/run/${server.slug}`,
      `/run/${server.slug}/mcp`,
      '/accounts/me/api-keys',
    ]) {
      expect([at, await statusOf(at, token)]).toEqual([at, 401]);
    }
    for (const at of [path, '/accounts/me', '/servers', `/servers/${encodeURIComponent(server.name)}`]) {
      const response = await fetch(app.url + at, { headers: { authorization: `Bearer ${token}` } });
      expect([at, response.status]).toEqual([at, 401]);
    }
  });

  verifies('login:token', 'opens no other path under the run endpoint of its server', async () => {
    const client = await registered(`${app.url}/run/${server.slug}`);
    const { access_token: own } = await client.login(browser);
    expect(await statusOf(`/run/${server.slug}`, own)).toBe(200);
    expect(await statusOf(`/run/${server.slug}/mcp`, own)).toBe(200);
    for (const below of ['/admin', '/mcp/x', '/x/mcp', '/.well-known/x']) {
      expect([below, await statusOf(`/run/${server.slug}${below}`, own)]).toEqual([below, 401]);
    }
  });

  verifies('login:token', 'opens no tunnel and no page', async () => {
    const { path: uplink } = await createConnection(app, person, { transport: 'uplink' }, { namespace });
    await expect(openTunnel(app, { key: token }, uplink)).rejects.toMatchObject({ status: 401 });
    await expect(openTunnel(app, { key: token }, path)).rejects.toMatchObject({ status: 401 });
    const me = await fetch(`${app.url}/me`, { headers: { authorization: `Bearer ${token}` }, redirect: 'manual' });
    expect([me.status, me.headers.get('location')]).toEqual([303, './login?next=/me']);
  });

  verifies('login:token', 'is no other kind of secret of the login, and no password', async () => {
    const client = await registered();
    const { refresh_token: refresh } = await client.login(browser);
    expect(await statusOf(`${path}/mcp`, refresh)).toBe(401);
    expect(await statusOf(`${path}/mcp`, `slipway_oat_${refresh}`)).toBe(401);
    expect(await statusOf(`${path}/mcp?access_token=${token}`)).toBe(401);
    expect((await openBrowser(app).submit('/login', { key: token })).status).toBe(403);
  });

  verifies('auth:unknown-key', 'leaves the 401 of a wrong API key as it was', async () => {
    const response = await call(`${path}/mcp`, `slipway_${'a'.repeat(43)}`);
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).not.toContain('resource_metadata');
    expect((await call(`${path}/mcp`)).headers.get('www-authenticate')).toContain('resource_metadata');
  });
});

describe('the consent page', () => {
  verifies('login:csrf', 'decides nothing without the token of its browser, nor for another site', async () => {
    const client = await registered();
    const page = await consentPath(client);
    const opened = await browser.get(page);
    const account = person.id;
    const foreign = openBrowser(app);
    const foreignToken = formTokenIn(await foreign.get('/login'));
    const own = { 'form-token': formTokenIn(opened), account, answer: 'allow' };
    const { 'form-token': _token, ...without } = own;
    const refused: Answer[] = [
      await browser.post(page, without),
      await browser.post(page, { ...own, 'form-token': foreignToken }),
      await browser.post(page, own, { 'sec-fetch-site': 'cross-site' }),
      await browser.post(page, own, { 'sec-fetch-site': 'same-site' }),
    ];
    expect(refused.map(({ status }) => status)).toEqual([403, 403, 403, 403]);
    expect((await browser.post(page, { ...own, account: other.id })).status).toBe(409);
    expect((await browser.get(`${page}?answer=allow`)).status).toBe(200);
    expect((await browser.post(page, own)).status).toBe(303);
  });

  verifies('login:csrf', 'is of the browser that began: a link to it opens nothing elsewhere', async () => {
    const client = await registered();
    const page = await consentPath(client);
    const victim = await signedInBrowser(app, other);
    const opened = await victim.get(page);
    expect([opened.status, opened.text]).toEqual([410, expect.stringContaining('This login is no longer valid')]);
    const token = formTokenIn(await victim.get('/me'));
    const posted = await victim.post(page, { 'form-token': token, account: other.id, answer: 'allow' });
    expect(posted.status).toBe(410);
  });

  verifies('login:framing', 'shows in no frame, and neither do the other pages of a login', async () => {
    const client = await registered();
    const page = await consentPath(client);
    const answers = [
      await browser.get(page),
      await browser.get('/consent/unknown'),
      await browser.get(client.authorizePath({ redirect_uri: 'https://evil.example/' })),
      await browser.get('/authorize'),
      await openBrowser(app).get('/authorize/unknown'),
      await browser.get('/me/access'),
      await openBrowser(app).get('/login'),
    ];
    for (const { headers, text } of answers) {
      expect(text).toContain('<h1>');
      expect(headers['content-security-policy']).toContain("frame-ancestors 'none'");
      expect(headers['x-frame-options']).toBe('DENY');
      expect(headers['cache-control']).toBe('no-store');
      expect(text).not.toMatch(/<script(?! src="\.[^"<>]+" defer><)/);
    }
  });

  verifies('login:fixation', 'is decided in a session that a foreign cookie cannot take over', async () => {
    const planted = openBrowser(app, new Map([[SESSION_COOKIE, 'A'.repeat(43)]]));
    const client = await registered();
    const page = await consentPath(client, planted);
    expect((await planted.get(page)).text).toContain('The app <strong>Test client</strong> asks to act for you');
    expect((await planted.submit('/login', { key: person.key, next: page })).headers.location).toBe(`.${page}`);
    expect(planted.cookies.get(SESSION_COOKIE)).not.toBe('A'.repeat(43));
    const attacker = openBrowser(app, new Map([[SESSION_COOKIE, 'A'.repeat(43)]]));
    expect(await personAt(app, attacker)).toBeNull();
    const shownPage = await planted.get(page);
    expect(shownPage.status).toBe(200);
    const cookies = ([] as string[]).concat((await planted.get(client.authorizePath())).headers['set-cookie'] ?? []);
    expect(cookies.length).toBeGreaterThan(0);
    for (const cookie of cookies) {
      expect(cookie.toLowerCase()).toContain('httponly');
      expect(cookie.toLowerCase()).toContain('samesite=lax');
    }
  });

  verifies('login:fixation', 'belongs to the person who saw it', async () => {
    const mine = await signedInBrowser(app, person);
    const client = await registered();
    const page = await consentPath(client, mine);
    const opened = await mine.get(page);
    await mine.submit('/logout', {}, '/me');
    await mine.submit('/login', { key: other.key });
    // The form of another session, and one of this session for the account of another.
    for (const [shown, status] of [
      [opened, 403],
      [await mine.get('/me'), 409],
    ] as const) {
      const form = { 'form-token': formTokenIn(shown), account: person.id, answer: 'allow' };
      expect((await mine.post(page, form)).status).toBe(status);
    }
  });
});

describe('a caller without access', () => {
  const missing = uniqueName('gone');
  let pairs: [string, string, string[]][];
  beforeAll(() => {
    pairs = [
      [`${path}/mcp`, `/connect/${missing}/gone/mcp`, [path.replace('/connect/', ''), `${missing}/gone`]],
      [`${path}/mcp`, `/connect/${namespace}/gone/mcp`, [path, `/connect/${namespace}/gone`]],
      [`/connect/${namespace}/.mcp`, `/connect/${missing}/.mcp`, [namespace, missing]],
      [`/run/${server.slug}`, `/run/${missing}`, [server.slug, missing]],
      [`/run/${server.slug}/mcp`, `/run/${missing}/mcp`, [server.slug, missing]],
    ];
  });

  verifies('login:enumeration', 'cannot tell an endpoint that exists from one that does not', async () => {
    const look = async (at: string) => {
      const raw = await supertest(app.url).post(at).send({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
      const document = await supertest(app.url).get(`/.well-known/oauth-protected-resource${at}`);
      return [raw, document];
    };
    for (const [exists, none, names] of pairs) {
      const [one, two] = [await look(exists), await look(none)];
      expect(one.map(({ status }) => status)).toEqual([401, 200]);
      expect(two.map((each) => shown(each, names))).toEqual(one.map((each) => shown(each, names)));
    }
  });

  verifies('login:enumeration', 'sees one page for what is not theirs and for what is not there', async () => {
    const stranger = await signedInBrowser(app, other);
    const look = async (at: string, of: BrowserSession) => {
      const client = await registered(app.url + at);
      return of.get(await consentPath(client, of));
    };
    const signedOut = openBrowser(app);
    for (const [exists, none, names] of pairs.slice(0, 3)) {
      const [one, two] = [await look(exists, stranger), await look(none, stranger)];
      expect(one.text).toContain('Nothing to authorize');
      expect(shown(two, names)).toEqual(shown(one, names));
      const [three, four] = [await look(exists, signedOut), await look(none, signedOut)];
      expect([three.status, four.status]).toEqual([200, 200]);
      expect(shown(four, names)).toEqual(shown(three, names));
    }
  });

  verifies('login:enumeration', 'cannot allow what is not theirs by a form of their own', async () => {
    const stranger = await signedInBrowser(app, other);
    const page = await consentPath(await registered(), stranger);
    const token = formTokenIn(await stranger.get(page));
    const posted = await stranger.post(page, { 'form-token': token, account: other.id, answer: 'allow' });
    expect([posted.status, posted.headers.location]).toEqual([404, undefined]);
  });
});

describe('a forged host', () => {
  const forged = { 'x-forwarded-host': UNKNOWN_HOST, 'x-forwarded-proto': 'https', forwarded: `host=${UNKNOWN_HOST}` };

  verifies('login:host', 'is refused by the pages of a login over http', async () => {
    const client = await registered();
    const page = await consentPath(client);
    for (const at of [client.authorizePath(), page, '/authorize/unknown', '/me/access']) {
      const { status, text, headers } = await browser.get(at, { host: `${UNKNOWN_HOST}:${app.env.port}` });
      expect([at, status, headers.location]).toEqual([at, 403, undefined]);
      expect(text).toContain('not the address of this service');
    }
    const token = formTokenIn(await browser.get(page));
    const fields = { 'form-token': token, account: person.id, answer: 'allow' };
    expect((await browser.post(page, fields, { host: UNKNOWN_HOST })).status).toBe(403);
  });

  verifies('login:host', 'changes neither metadata nor redirects', async () => {
    for (const headers of [{ host: UNKNOWN_HOST }, forged]) {
      for (const document of [
        '/.well-known/oauth-authorization-server',
        '/.well-known/openid-configuration',
        `/.well-known/oauth-protected-resource${path}/mcp`,
      ]) {
        const { text, status } = await supertest(app.url).get(document).set(headers);
        expect(status).toBe(200);
        expect(text).not.toContain(UNKNOWN_HOST);
        expect(text).toContain(app.url);
      }
      const refused = await supertest(app.url).post(`${path}/mcp`).set(headers).send({});
      expect(refused.headers['www-authenticate']).toContain(`resource_metadata="${app.url}/`);
    }
    const client = await registered();
    const begun = await browser.get(client.authorizePath(), forged);
    expect([begun.status, begun.headers.location]).toEqual([303, expect.stringMatching(/^\/consent\//)]);
    const page = String(begun.headers.location);
    const fields = { 'form-token': formTokenIn(await browser.get(page)), account: person.id, answer: 'allow' };
    const decided = await browser.post(page, fields, forged);
    expect(String(decided.headers.location)).not.toContain(UNKNOWN_HOST);
  });

  verifies('login:host', 'changes neither cookies nor addresses behind https', async () => {
    const secure = await app.sibling({ PUBLIC_URL: 'https://slipway.example', OAUTH: 'on' });
    const client = new LoginClient(secure, `https://slipway.example${path}/mcp`, REDIRECT);
    await client.register();
    for (const headers of [{}, { host: UNKNOWN_HOST }, { ...forged, 'x-forwarded-proto': 'http' }]) {
      const begun = await supertest(secure.url)
        .get(client.authorizePath())
        .set(headers)
        .redirects(0)
        .ok(() => true);
      expect([begun.status, begun.headers.location]).toEqual([303, expect.stringMatching(/^\/consent\//)]);
      const cookies = ([] as string[]).concat(begun.headers['set-cookie'] ?? []);
      expect(cookies.length).toBeGreaterThan(0);
      for (const cookie of cookies) {
        expect(cookie.toLowerCase()).toContain('; secure');
        expect(cookie.toLowerCase()).not.toContain('domain=');
      }
      const { body } = await supertest(secure.url).get('/.well-known/oauth-authorization-server').set(headers);
      expect(body).toMatchObject({
        issuer: 'https://slipway.example',
        token_endpoint: 'https://slipway.example/token',
      });
    }
    await secure.close();
  });

  verifies('login:host', 'adds nothing to the challenge, nor does a path with quotes', async () => {
    const response = await supertest(app.url)
      .post(`/run/a%22,%20resource_metadata=%22https://${UNKNOWN_HOST}`)
      .send({});
    expect(response.headers['www-authenticate'] ?? '').not.toContain(`"https://${UNKNOWN_HOST}`);
    const raw = await rawChallenge(`/run/a",resource_metadata="x`);
    expect(raw.match(/resource_metadata="/g)).toHaveLength(1);
  });
});

/** The challenge of a request whose path is sent as it is. */
async function rawChallenge(at: string): Promise<string> {
  const { request } = await import('node:http');
  return new Promise((resolve, reject) => {
    const asked = request(`${app.url}/x`, { method: 'POST', path: at }, (response) => {
      response.resume();
      resolve(response.headers['www-authenticate'] ?? '');
    });
    asked.on('error', reject).end();
  });
}

describe('a client that registered itself', () => {
  verifies('login:machine', 'gets no token without a person, by whatever grant', async () => {
    const every = ['client_credentials', 'password', 'implicit', 'urn:ietf:params:oauth:grant-type:device_code'];
    const client = await registered(resource, REDIRECT, {
      grant_types: every,
      response_types: ['token', 'id_token', 'code id_token token'],
      token_endpoint_auth_method: 'client_secret_post',
      scope: 'openid mcp',
    });
    for (const grant_type of [...every, 'urn:ietf:params:oauth:grant-type:jwt-bearer', 'authorization_code', '']) {
      const fields = {
        grant_type,
        resource,
        scope: 'mcp',
        username: person.name,
        password: person.key,
        assertion: 'a',
      };
      const { status, body } = await client.token(fields);
      expect([grant_type, status, Object.keys(body)]).toEqual([grant_type, 400, ['error', 'error_description']]);
    }
    for (const at of [
      '/device',
      '/device_authorization',
      '/device/auth',
      '/backchannel',
      '/request',
      '/par',
      '/introspect',
    ]) {
      const { status } = await send(at, new URLSearchParams({ client_id: client.id }));
      expect([at, [401, 404, 405].includes(status)]).toEqual([at, true]);
    }
  });

  verifies('login:machine', 'gets codes only, and no ID token', async () => {
    const client = await registered();
    for (const response_type of ['token', 'id_token', 'code token', 'code id_token', 'none', 'code id_token token']) {
      const { status, headers } = await browser.get(client.authorizePath({ response_type, nonce: 'n' }));
      expect([response_type, status]).toEqual([response_type, 303]);
      expect(String(headers.location)).toContain('error=unsupported_response_type');
    }
    const code = await codeOf(client, { scope: 'openid profile email mcp', nonce: 'n', claims: '{"id_token":{}}' });
    const { body } = await client.redeem(code);
    expect(Object.keys(body).sort()).toEqual(['access_token', 'expires_in', 'refresh_token', 'scope', 'token_type']);
    expect(body.scope).toBe('mcp');
  });

  verifies('login:bodies', 'sends broken and huge bodies in vain', async () => {
    const json = { 'content-type': 'application/json' };
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    const metadata = { redirect_uris: [REDIRECT], token_endpoint_auth_method: 'none' };
    const cases: [string, string, Record<string, string>, number][] = [
      ['/register', '{"redirect_uris":', json, 400],
      ['/register', '[]', json, 400],
      ['/register', 'null', json, 400],
      ['/register', '', json, 400],
      ['/register', '['.repeat(30_000), json, 400],
      ['/register', '{"redirect_uris":"https://a.example"}', json, 400],
      ['/register', '{"redirect_uris":[1,null]}', json, 400],
      ['/register', JSON.stringify({ ...metadata, client_name: 'a'.repeat(70_000) }), json, 413],
      ['/register', new URLSearchParams({ redirect_uris: REDIRECT }).toString(), form, 400],
      ['/token', JSON.stringify({ grant_type: 'authorization_code' }), json, 400],
      ['/token', `grant_type=authorization_code&code=${'a'.repeat(70_000)}`, form, 413],
      ['/token', 'grant_type=authorization_code&grant_type=refresh_token', form, 400],
      ['/token', '%', form, 400],
      ['/token', '', form, 400],
      ['/revoke', '', form, 400],
      ['/revoke', JSON.stringify({ token: 'a' }), json, 400],
    ];
    for (const [at, body, headers, status] of cases) {
      const answer = await send(at, body, headers);
      expect([at, body.slice(0, 40), answer.status]).toEqual([at, body.slice(0, 40), status]);
      expect(answer.body).toEqual({ error: expect.any(String), error_description: expect.any(String) });
    }
    for (const method of ['GET', 'PUT', 'DELETE', 'PATCH']) {
      const answer = await fetch(`${app.url}/token`, { method });
      expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(answer.status).toBeLessThan(500);
    }
  });

  verifies('login:document-egress', 'reads no internal host through its client id', async () => {
    const client = new LoginClient(app, resource, REDIRECT);
    client.id = 'https://127.0.0.9/any/path';
    const answer = await browser.get(client.authorizePath());
    expect(answer.text).toContain('127.0.0.9 cannot be reached');
    await expect(app.get(DocumentEgress).request(new URL(client.id), { method: 'GET', headers: {} })).rejects.toThrow(
      EgressRefusedError,
    );
  });

  verifies('login:slow-bodies', 'holds 256 forms open in vain', async () => {
    const client = new LoginClient(app, resource, REDIRECT);
    const { refresh_token: refreshToken } = await client.login(browser);
    const bodies = app.get(BodyBudget);
    const { hostname, port } = new URL(app.url);
    bodies.formMsMax = 3_000;
    const slow = Array.from({ length: 256 }, (_, i) => {
      const socket = connect({ host: hostname, port: Number(port), localAddress: `127.0.0.${2 + (i % 4)}` });
      const at = (['/token', '/register', '/login', '/revoke'] as const)[i >> 6];
      const type = 'application/x-www-form-urlencoded';
      socket.write(
        `POST ${at} HTTP/1.1\r\nhost: ${hostname}:${port}\r\ncontent-type: ${type}\r\ncontent-length: 60000\r\n\r\na`,
      );
      const slowly = { socket, text: '' };
      socket.on('error', () => undefined).on('data', (chunk: Buffer) => (slowly.text += chunk.toString()));
      return slowly;
    });
    try {
      await until(() => slow.every(({ socket }) => !socket.connecting), 'all are connected');
      for (const { socket } of slow) socket.write('b');
      expect((await client.refresh(refreshToken)).status).toBe(200);
      expect((await openBrowser(app).submit('/login', { key: person.key })).status).toBe(303);
      expect((await registered()).id).not.toBe('');
      await until(() => slow.every(({ text }) => /^HTTP\/1.1 4\d\d .*\r\n\r\n/s.test(text)), 'all are answered');
      expect(slow.filter(({ text }) => text.startsWith('HTTP/1.1 408')).length).toBe(256);
    } finally {
      bodies.formMsMax = 10_000;
      for (const { socket } of slow) socket.destroy();
    }
  });

  verifies('login:registration', 'may do so 100 times in an hour before a person allows one', async () => {
    const own = await startApp();
    const owner = await own.account();
    const { path: at } = await createConnection(own, owner, { mcpUrl: upstream.url });
    const client = new LoginClient(own, `${own.url}${at}/mcp`, REDIRECT);
    const register = async () => {
      const headers = { 'content-type': 'application/json' };
      const body = JSON.stringify({ redirect_uris: [REDIRECT] });
      return fetch(`${own.url}/register`, { method: 'POST', headers, body });
    };
    await client.register();
    for (let i = 1; i < 100; i += 1) expect((await register()).status).toBe(201);
    const refused = await register();
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await refused.json()).toEqual({ error: 'temporarily_unavailable', error_description: expect.any(String) });
    await client.login(await signedInBrowser(own, owner));
    expect((await register()).status).toBe(201);
    expect((await register()).status).toBe(429);
    await own.close();
  });

  verifies('login:revoke', 'cannot revoke or refresh tokens of another client', async () => {
    const client = await registered();
    const { access_token: token, refresh_token: refresh } = await client.login(browser);
    const foreign = await registered();
    for (const stolen of [token, refresh]) expect((await foreign.revoke(stolen)).status).toBe(200);
    expect((await foreign.refresh(refresh)).status).toBe(400);
    expect(await statusOf(`${path}/mcp`, token)).toBe(200);
    expect((await client.refresh(refresh)).status).toBe(200);
  });
});
