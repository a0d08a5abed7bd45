// Hostile callers of `node bench/hostile.mjs` at the sign-in and OAuth endpoints. Each kind prints what it saw as a line of
// JSON, which the bench shows at the end.
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';

const REDIRECT = 'https://app.example/callback';
/** Addresses of the slow forms, 64 each. */
const addresses = ['127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.5'];

/** A browser of a person: cookies, and forms with their hidden fields. */
class Browser {
  cookies = new Map();

  constructor(url) {
    this.url = url;
  }

  async send(path, form) {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(new URL(path, this.url), {
      method: form ? 'POST' : 'GET',
      body: form && new URLSearchParams(form),
      redirect: 'manual',
      headers: { cookie, origin: this.url, accept: 'text/html' },
    });
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line);
      this.cookies.set(name, value);
    }
    return { status: response.status, text: await response.text(), location: response.headers.get('location') };
  }

  /** Opens a page and sends its form. */
  async submit(path, fields) {
    const { text } = await this.send(path);
    const hidden = [...text.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)].map(
      ([, ...pair]) => pair,
    );
    return this.send(path, { ...Object.fromEntries(hidden), ...fields });
  }
}

/** A person who is signed in with a key, and a client that has registered. */
async function personAt({ url, key }, name = 'bench') {
  const browser = new Browser(url);
  const { status } = await browser.submit('/login', { key });
  if (status !== 303) throw new Error(`/login answered ${status}`);
  return { browser, clientId: await register(url, name) };
}

async function register(url, name) {
  const body = { client_name: name, redirect_uris: [REDIRECT], token_endpoint_auth_method: 'none' };
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(`${url}/register`, { method: 'POST', headers, body: JSON.stringify(body) });
  return (await answer.json()).client_id;
}

function authorizePath(clientId, resource, verifier, state = 's') {
  const challenge = createHash('sha256').update(verifier).digest('base64url');
  const query = { client_id: clientId, response_type: 'code', redirect_uri: REDIRECT, state, resource };
  return `/authorize?${new URLSearchParams({ ...query, code_challenge: challenge, code_challenge_method: 'S256' })}`;
}

/** Authorizes a client. @returns its code */
async function consent(browser, clientId, resource, verifier) {
  const { location: page } = await browser.send(authorizePath(clientId, resource, verifier));
  const { location: back } = await browser.submit(page, { answer: 'allow' });
  const { location } = await browser.send(back);
  return new URL(location).searchParams.get('code');
}

/** The first tokens of a new login. @returns the client id and the refresh token */
export async function logIn({ url, key }, path) {
  const { browser, clientId } = await personAt({ url, key });
  const verifier = randomBytes(32).toString('base64url');
  const code = await consent(browser, clientId, `${url}${path}/mcp`, verifier);
  const form = {
    client_id: clientId,
    grant_type: 'authorization_code',
    code,
    redirect_uri: REDIRECT,
    code_verifier: verifier,
  };
  const tokens = await (await fetch(`${url}/token`, { method: 'POST', body: new URLSearchParams(form) })).json();
  return { clientId, refreshToken: tokens.refresh_token };
}

async function refresh(url, { clientId, refreshToken }) {
  const form = { client_id: clientId, grant_type: 'refresh_token', refresh_token: refreshToken };
  const response = await fetch(`${url}/token`, { method: 'POST', body: new URLSearchParams(form) });
  const { refresh_token: next } = await response.json();
  return { status: response.status, next, retryAfterSeconds: Number(response.headers.get('retry-after')) };
}

/** 64 sockets that refresh one login, each the newest token that it has. */
function refreshers({ url, login }, obeys) {
  const statuses = {};
  for (let n = 0; n < 64; n += 1) {
    void (async () => {
      for (let refreshToken = login.refreshToken; ;) {
        const { status, next, retryAfterSeconds } = await refresh(url, { ...login, refreshToken }).catch(() => ({
          status: 0,
        }));
        statuses[status] = (statuses[status] ?? 0) + 1;
        refreshToken = next ?? refreshToken;
        if (status === 429 && obeys) await wait(retryAfterSeconds * 1_000);
        if (status === 0) await wait(50);
      }
    })();
  }
  setInterval(() => console.log(JSON.stringify(statuses)), 500);
}

export const loginKinds = {
  l1: (job) => refreshers(job, true),
  l2: (job) => refreshers(job, false),
  plain({ url, key, connection }) {
    for (let n = 0; n < 64; n += 1) {
      void (async () => {
        for (;;)
          await fetch(url + connection, { headers: { authorization: `Bearer ${key}` } }).then(
            (answer) => answer.text(),
            () => wait(50),
          );
      })();
    }
  },
  async l3({ url, connection }) {
    const clientId = await register(url, 'waiting');
    const begun = authorizePath(clientId, `${url}${connection}/mcp`, 'v'.repeat(43), 's'.repeat(2_000));
    let sent = 0;
    for (let n = 0; n < 16; n += 1) {
      void (async () => {
        for (; sent < 1_000; sent += 1)
          await fetch(url + begun, { redirect: 'manual' }).then(
            (answer) => answer.text(),
            () => wait(50),
          );
      })();
    }
    setInterval(() => console.log(JSON.stringify({ authorizations: sent })), 500);
  },
  l4({ url, slowLogin: { clientId, refreshToken } }) {
    const { hostname, port } = new URL(url);
    const hold = (localAddress) => {
      const socket = connect({ port: Number(port), host: hostname, localAddress });
      socket.on('error', () => {}).resume();
      socket.write(
        'POST /token HTTP/1.1\r\nhost: a\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: 9000\r\n\r\n',
      );
      const drip = setInterval(() => socket.write('a'), 1_000);
      void once(socket, 'close').then(() => {
        clearInterval(drip);
        setTimeout(() => hold(localAddress), 100);
      });
    };
    addresses.forEach((address) => Array.from({ length: 64 }, () => hold(address)));
    let worstMs = 0;
    let failed = 0;
    void (async () => {
      for (let token = refreshToken; ; await wait(1_100)) {
        const startedAt = performance.now();
        const { status, next } = await refresh(url, { clientId, refreshToken: token }).catch(() => ({ status: 0 }));
        worstMs = Math.max(worstMs, Math.round(performance.now() - startedAt));
        if (status !== 200) failed += 1;
        token = next ?? token;
        console.log(JSON.stringify({ 'slowest refresh ms': worstMs, failed }));
      }
    })();
  },
  async l5({ url, key, connection }) {
    const { browser, clientId } = await personAt({ url, key }, 'n'.repeat(20_000));
    const counts = { consents: 0, 'bytes of /me/access': 0 };
    for (; counts.consents < 443; counts.consents += 1) {
      await consent(browser, clientId, `${url}${connection}/mcp`, 'v'.repeat(43)).catch(() => null);
      if (counts.consents % 20 === 0) {
        const pages = await Promise.all(Array.from({ length: 9 }, () => browser.send('/me/access')));
        counts['bytes of /me/access'] = Math.max(...pages.map(({ text }) => text.length));
        console.log(JSON.stringify(counts));
      }
    }
  },
};
