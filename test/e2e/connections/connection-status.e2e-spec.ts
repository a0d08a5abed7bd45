import { createServer } from 'node:http';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { StatusRecorder } from '../../../src/modules/connections/core/status-recorder.js';
import { testAccount, testApp, uniqueName, type TestApp } from '../../support/app.js';
import { createConnection, createNamespace } from '../../support/factories.js';
import {
  deadHost,
  refusedPort,
  startFaulty,
  type FaultKind,
  type FaultOptions,
} from '../../support/special-upstreams/faulty-upstreams.js';
import { startScripted } from '../../support/special-upstreams/scripted-upstream.js';
import { until } from '../../support/until.js';
import { closing, start } from '../../support/upstream/upstream-clients.js';
import { listen, shut } from '../../support/upstream/upstream-net.js';
import { verifies } from '../../support/verifies.js';

/** Time limit for opening a session in the process with short deadlines. */
const CONNECT_MS = 500;

/** An address nobody has: listed, so that the default of `loopback` is gone and nothing of this machine may be dialled. */
const NOTHING_ALLOWED = '192.0.2.1';

const app = testApp();
let strict: TestApp;
/** Gives up early; whatever a busy machine may be late with is asked of the other one. */
let hasty: TestApp;
const owner = testAccount(app);

beforeAll(async () => {
  strict = await app.sibling({ EGRESS_ALLOW: NOTHING_ALLOWED });
  hasty = await app.sibling({ UPSTREAM_CONNECT_TIMEOUT_MS: String(CONNECT_MS) });
});

interface Status {
  state: string;
  reason?: string;
  message?: string;
  nextStep?: string;
  since: string;
  lastOkAt?: string;
}

/** The status of a new connection to this URL; a get and a list tell the same. */
async function statusOf(mcpUrl: string, process = app): Promise<Status> {
  const { path, namespace, body } = await createConnection(process, owner, { mcpUrl });
  expect((await app.as(owner).get(path)).body).toEqual(body);
  expect((await app.as(owner).get(`/connect/${namespace}`)).body).toEqual({ connections: [body], nextCursor: null });
  expect(body).not.toHaveProperty('serverInfo');
  return body.status as Status;
}

/** The message of a connection to this URL, which must be an `error`. */
async function errorOf(mcpUrl: string, process = app): Promise<string> {
  const status = await statusOf(mcpUrl, process);
  const any = expect.any(String);
  expect(status).toEqual({ state: 'error', reason: any, message: any, nextStep: any, since: any });
  return status.message as string;
}

/** The message of a connection to an endpoint that fails in this way. */
async function faultOf(kind: FaultKind, options?: FaultOptions, process = app): Promise<string> {
  return errorOf(closing(await startFaulty(kind, options)).url, process);
}

describe("the text of the server's refusal", () => {
  const refusing = async (contentType: string, body: string, status = 403) => {
    const server = createServer((_request, response) =>
      response.writeHead(status, { 'content-type': contentType }).end(body),
    );
    const port = await listen(server);
    return closing({ url: `http://127.0.0.1:${port}/mcp?key=k3y-in-query`, close: () => shut(server) }).url;
  };

  verifies(
    'connection:status:words',
    'a refusal is shown as the server worded it, printable and without secrets',
    async () => {
      const headers = { 'X-Api-Key': 'h3ader-value' };
      const messageOf = async (mcpUrl: string): Promise<string> =>
        ((await createConnection(app, owner, { mcpUrl, headers })).body.status as Status).message as string;
      expect(await messageOf(await refusing('text/plain', 'Access is only allowed at localhost:4445\n'))).toMatch(
        /answered 403: the headers it was sent do not give access\. The server said: "Access is only allowed at localhost:4445"\.$/,
      );
      const secret = JSON.stringify({
        error: { message: 'No \u202e h3ader-value, k3y-in-query, sk-abcdefghijklmnop1234' },
      });
      expect(await messageOf(await refusing('application/json', secret, 500))).toMatch(
        /The server said: "No \\u\{202E\} …, …, \[redacted\]"\.$/,
      );
      expect(await messageOf(await refusing('text/plain', 'x'.repeat(300), 418))).toContain(`"${'x'.repeat(200)}…"`);
      expect(await messageOf(await refusing('text/html', 'A page'))).not.toContain('said');
    },
  );

  verifies('connection:status:words', 'a visitor of the setup page does not read them', async () => {
    let status = 401;
    const server = createServer((_request, response) =>
      response.writeHead(status, { 'content-type': 'text/plain' }).end('Only for the owner'),
    );
    const port = await listen(server);
    const { url } = closing({ url: `http://127.0.0.1:${port}/mcp`, close: () => shut(server) });
    const { path, body } = await createConnection(app, owner, { mcpUrl: url });
    const { setupUrl } = body.status as { setupUrl: string };
    status = 403;
    const changed = await app.as(owner).put(path, { mcpUrl: url });
    expect((changed.body.status as Status).message).toContain('Only for the owner');
    const page = await (await fetch(setupUrl)).text();
    expect(page).toContain('do not give access');
    expect(page).not.toContain('Only for the owner');
  });
});

describe('a server that works', () => {
  verifies(
    ['connection:state:connected', 'connection:status:values'],
    'sets the connection to `connected`, without a message',
    async () => {
      const upstream = await start();
      const { body } = await createConnection(app, owner, { mcpUrl: upstream.url });
      const iso = expect.stringMatching(/^\d{4}-.*Z$/);
      expect(body.status).toEqual({ state: 'connected', reason: 'ok', since: iso, lastOkAt: iso });
      expect(upstream.count('initialize')).toBe(1);
    },
  );

  verifies(
    ['connection:state:connected-after-round-trip', 'connection:status:values', 'connection:field:status'],
    'is not shown as `connected` before it completed the initialization',
    async () => {
      const upstream = await start({ delayInitializeMs: 60_000 });
      const path = `/connect/${await createNamespace(app, owner)}/${uniqueName()}`;
      const pending = hasty.as(owner).put(path, { mcpUrl: upstream.url }).then();
      await upstream.waitFor(() => upstream.count('initialize') === 1);
      const meanwhile = (await app.as(owner).get(path)).body as { status: Status };
      expect(meanwhile.status).toMatchObject({ state: 'disconnected', message: 'Not called yet.' });
      expect((await pending).body).toMatchObject({ status: { state: 'error' } });
      expect((await app.as(owner).get(path)).body).toMatchObject({ status: { state: 'error' } });
    },
  );

  it('is read and listed while a status of another connection cannot be written', async () => {
    const upstream = await start();
    const [mine, other] = [
      await createConnection(app, owner, { mcpUrl: upstream.url }),
      await createConnection(app, owner, { mcpUrl: upstream.url }),
    ];
    const recorder = app.get(StatusRecorder);
    await recorder.settle();
    const holder = app.database.createQueryRunner();
    await holder.startTransaction();
    try {
      await holder.query('SELECT 1 FROM connections WHERE connection_id = $1 FOR UPDATE', [other.connectionId]);
      const [row] = await app.database.query<{ id: string; revision: number }[]>(
        'SELECT id, revision FROM connections WHERE connection_id = $1',
        [other.connectionId],
      );
      recorder.observer(row).succeeded();
      const written = recorder.settle();
      expect((await app.as(owner).get(mine.path)).body).toMatchObject({ status: { state: 'connected' } });
      expect((await app.as(owner).get(`/connect/${mine.namespace}`)).body).toMatchObject({ connections: [mine.body] });
      await holder.rollbackTransaction();
      await written;
    } finally {
      await holder.release();
    }
    const { status } = (await app.as(owner).get(other.path)).body as { status: Status };
    expect(status.lastOkAt).not.toBe((other.body.status as Status).lastOkAt);
  });

  verifies('connection:status:values', 'the database takes no state but those', async () => {
    const { url } = await start();
    const { connectionId } = await createConnection(app, owner, { mcpUrl: url });
    const write = (state: string) =>
      app.database.query('UPDATE connections SET status_state = $1 WHERE connection_id = $2', [state, connectionId]);
    for (const state of ['connecting', 'CONNECTED', 'ok', ''])
      await expect(write(state)).rejects.toThrow(/connections_state/);
    for (const state of ['disconnected', 'auth_required', 'error', 'connected']) await write(state);
  });

  verifies(
    'connection:status:last-known',
    'is not contacted when the connection is read or listed: the last known status is returned',
    async () => {
      const upstream = await start();
      const { path, namespace, body } = await createConnection(app, owner, { mcpUrl: upstream.url });
      const seen = upstream.requests.length;
      for (let i = 0; i < 3; i++) {
        expect((await app.as(owner).get(path)).body).toEqual(body);
        expect((await app.as(owner).get(`/connect/${namespace}`)).body).toMatchObject({ connections: [body] });
      }
      expect(upstream.requests).toHaveLength(seen);
      const accepted = upstream.connections;
      await upstream.close();
      expect((await app.as(owner).get(path)).body).toEqual(body);
      expect(upstream.connections).toBe(accepted);

      expect((await app.as(owner).post(`${path}/.tools/echo`, { message: 'hi' })).status).toBe(502);
      const { status } = (await app.as(owner).get(path)).body as { status: Status };
      expect(status).toMatchObject({ state: 'error', lastOkAt: (body.status as Status).lastOkAt });
      const listed = await app.as(owner).get(`/connect/${namespace}`);
      expect((listed.body as { connections: { status: Status }[] }).connections[0].status).toEqual(status);
    },
  );

  verifies(
    'connection:state:put-re-evaluates',
    'is asked by a PUT that changes what it receives, or names it while it is not connected',
    async () => {
      const headers = { 'x-key': 'let-me-in' };
      const upstream = await start({ requireHeaders: headers });
      const { path, body } = await createConnection(app, owner, { mcpUrl: upstream.url });
      const put = async (given: object) => ((await app.as(owner).put(path, given)).body as { status: Status }).status;
      expect(body.status).toMatchObject({ state: 'auth_required' });
      const refused = upstream.requests.length;
      const link = (body.status as { setupUrl: string }).setupUrl;
      expect(await put({ mcpUrl: upstream.url })).toMatchObject({ state: 'auth_required', setupUrl: link });
      expect(upstream.requests.length).toBeGreaterThan(refused);
      const connected = await put({ headers });
      const any = expect.any(String);
      expect(connected).toEqual({ state: 'connected', reason: 'ok', since: any, lastOkAt: any });
      expect(Date.parse(connected.since)).toBeGreaterThanOrEqual(Date.parse((body.status as Status).since));
      const opened = upstream.count('initialize');
      for (const given of [{ tools: { allow: ['echo'] } }, { callTimeoutMs: 60_000 }]) {
        expect(await put(given)).toMatchObject({ state: 'connected', since: connected.since });
      }
      expect(upstream.count('initialize')).toBe(opened + 2);
      expect(await put({ headers: { 'x-key': 'wrong' } })).toMatchObject({ state: 'auth_required' });
      await upstream.close();
      const dead = await put({ mcpUrl: upstream.url });
      expect(dead).toMatchObject({ state: 'error' });
      expect((await app.as(owner).get(path)).body).toMatchObject({ status: dead });
    },
  );

  verifies(
    'connection:put:session-kept',
    'keeps its session over a rename, new metadata, the stored values and the start of a recording',
    async () => {
      const upstream = await start({ sessions: true });
      const mcpUrl = `${upstream.url}?token=t`;
      const headers = { 'X-Key': 'k' };
      const whole = {
        mcpUrl,
        headers,
        name: 'First',
        metadata: { user: 'u1', at: { b: 1, a: [2] } },
        tools: { deny: ['x'] },
      };
      const { path, body } = await createConnection(app, owner, { ...whole, callTimeoutMs: 60_000 });
      await app.as(owner).post(`${path}/.tools/echo`, { message: 'hi' }).expect(200);
      const [asked, sessions] = [upstream.requests.length, upstream.count('initialize')];
      const row = async () => {
        const [{ version }] = await app.database.query<{ version: string }[]>(
          'SELECT xmin::text AS version FROM connections WHERE connection_id = $1',
          [body.connectionId],
        );
        return version;
      };
      const put = async (path: string, given: object) =>
        (await app.as(owner).put(path, given).expect(200)).body as object;
      // The outcome of the call is written after its response.
      await app.get(StatusRecorder).settle();
      const before = await row();
      const reordered = { ...whole, headers: { 'x-key': 'k' }, metadata: { at: { a: [2], b: 1 }, user: 'u1' } };
      for (const given of [{}, whole, reordered, { mcpUrl: body.mcpUrl }]) expect(await put(path, given)).toEqual(body);
      expect(await row()).toBe(before);
      const renamed = { ...body, name: 'Second', metadata: { user: 'u2' } };
      expect(await put(path, { ...whole, name: 'Second', metadata: { user: 'u2' } })).toEqual(renamed);
      await put(`${path}/recording`, { enabled: true });
      expect([upstream.requests.length, upstream.count('initialize')]).toEqual([asked, sessions]);
      await app.as(owner).post(`${path}/.tools/echo`, { message: 'hi' }).expect(200);
      expect((await app.as(owner).get(`${path}/recording`)).body).toMatchObject({ calls: 1 });
      await put(`${path}/recording`, { enabled: false });
      await app.as(owner).post(`${path}/.tools/echo`, { message: 'hi' }).expect(200);
      expect((await app.as(owner).get(`${path}/recording`)).body).toMatchObject({ calls: 1 });
      expect([upstream.count('initialize'), upstream.requests.some(({ method }) => method === 'DELETE')]).toEqual([
        sessions,
        false,
      ]);
    },
  );
});

describe('a server that returns 401', () => {
  verifies(
    'connection:state:auth-required',
    'sets the connection to `auth_required`, with or without a challenge, and the status suggests a header',
    async () => {
      for (const challenge of [undefined, 'Basic realm="x"', false] as const) {
        const { url } = closing(await startFaulty('needs-auth', { challenge }));
        expect(await statusOf(url)).toEqual({
          state: 'auth_required',
          message: expect.stringMatching(
            /answered 401.*PUT the connection again with headers, for example \{"headers"/,
          ),
          reason: 'unauthorized',
          nextStep: expect.stringMatching(/setupUrl/),
          setupUrl: expect.stringMatching(/^http/),
          authorizationUrl: expect.stringMatching(/^http/),
          since: expect.any(String),
        });
      }
    },
  );

  verifies('connection:state:auth-required', 'is reported to reject the headers of the connection', async () => {
    const upstream = await start({ requireHeaders: { 'x-key': 'right' } });
    const { body } = await createConnection(app, owner, { mcpUrl: upstream.url, headers: { 'X-Key': 'wrong' } });
    expect(body.status).toMatchObject({
      state: 'auth_required',
      message: expect.stringMatching(/does not accept the headers of this connection.*PUT the connection again/),
    });
  });
});

describe('a target that cannot be used', () => {
  verifies('connection:error:network', 'a host without an address is named', async () => {
    expect(await errorOf(deadHost)).toBe(
      'The host "no-such-host.invalid" has no address in DNS: is its name spelled right?',
    );
  });

  verifies('connection:error:network', 'a closed port is named', async () => {
    const url = await refusedPort();
    expect(await errorOf(url)).toBe(
      `Nothing listens on ${new URL(url).host}: is the server running, and is the port right?`,
    );
  });

  verifies('connection:error:wrong-address', 'a 404 asks for the path', async () => {
    expect(await faultOf('not-found')).toMatch(/\/mcp answered 404: is the path right\?/);
    const upstream = await start();
    expect(await errorOf(upstream.url.replace('/mcp', '/sse'))).toMatch(
      /\/sse answered 404: is the path right\? .* \/mcp\. The server said: "Not found"\.$/,
    );
  });

  verifies('connection:error:wrong-address', 'a web page is called one', async () => {
    expect(await faultOf('html')).toMatch(/\/mcp is a web page, not an MCP endpoint: is the path right\?/);
  });

  verifies('connection:error:wrong-address', 'another address is the next step, not patience', async () => {
    for (const kind of ['html', 'not-found', 'redirect', 'not-rpc'] as const) {
      const { reason, nextStep } = await statusOf(closing(await startFaulty(kind)).url);
      expect([kind, reason]).toEqual([kind, 'not_mcp']);
      expect(nextStep).toMatch(/^Check the path of mcpUrl/);
    }
  });

  verifies('connection:error:reached', 'a server that is reached gets other advice than its address', async () => {
    const cases = {
      'too-busy': ['rate_limited', /^Wait: .* less often/],
      'server-error': ['server_error', /^Wait: .* ask the operator of the MCP server/],
      unavailable: ['server_error', /^Wait: /],
      'bad-protocol-version': ['server_error', /^Wait: /],
      refuses: ['server_error', /^Wait: /],
      garbage: ['unreadable', /^Check the path of mcpUrl\. If it is right, ask the operator/],
      empty: ['unreadable', /^Check the path of mcpUrl/],
    } as const;
    for (const [kind, [reason, advice]] of Object.entries(cases)) {
      const status = await statusOf(closing(await startFaulty(kind as FaultKind)).url);
      expect([kind, status.reason, status.nextStep]).toEqual([kind, reason, expect.stringMatching(advice)]);
    }
  });

  verifies(
    'connection:error:about-the-server',
    'a call that breaks off leaves no word about the call in it',
    async () => {
      const upstream = await start();
      const { path } = await createConnection(app, owner, { mcpUrl: upstream.url });
      const call = app
        .as(owner)
        .post(`${path}/.tools/hold`, {})
        .then((answer) => answer.body as { message: string });
      await upstream.waitFor((one) => one.count('tools/call') === 1);
      await upstream.close();
      const { message } = await call;
      expect(message).toMatch(/ Whether the call was carried out is unknown; it was not repeated\.$/);
      const { status } = (await app.as(owner).get(path)).body as { status: Status };
      expect(status).toMatchObject({ state: 'error', message: message.replace(/ Whether .*/, '') });
    },
  );

  verifies(
    'connection:error:unreadable-answer',
    'a call whose answer cannot be read may have been carried out',
    async () => {
      const bodies: Record<string, string> = { nothing: '', cut: '{"jsonrpc": "2.0", "res', other: '{"ok": true}' };
      bodies.long = ' '.repeat(17 * 1024 * 1024);
      const upstream = closing(
        await startScripted(({ method, params }, res) => {
          if (method === 'tools/list') return '{"tools":[]}';
          res.writeHead(200, { 'content-type': 'application/json' }).end(bodies[params?.name as string]);
        }),
      );
      const { path } = await createConnection(app, owner, { mcpUrl: upstream.url });
      for (const name of Object.keys(bodies)) {
        const before = upstream.count('tools/call');
        const { status, body } = await app.as(owner).post(`${path}/.tools/${name}`, {});
        expect([name, status]).toEqual([name, 502]);
        expect((body as Status).message).toMatch(
          / Whether the call was carried out is unknown; it was not repeated\.$/,
        );
        expect(upstream.count('tools/call')).toBe(before + 1);
      }
    },
  );

  verifies('connection:error:network', 'an untrusted certificate is refused before a request is sent', async () => {
    const upstream = closing(await startFaulty('tls-self-signed'));
    expect(await errorOf(upstream.url)).toMatch(/^The TLS connection to "127\.0\.0\.1" failed .*certificate/);
    expect(upstream.hits()).toBe(0);
    const { url } = await start();
    expect(await errorOf(url.replace('http:', 'https:'))).toMatch(
      /^127\.0\.0\.1:\d+ does not speak TLS: does its URL start with http:\/\/ instead\?$/,
    );
  });

  verifies(
    'connection:error:network',
    'silence and a body without end stop at the deadline, request and all',
    async () => {
      const startedAt = Date.now();
      const late = /did not open a session within 0\.5 s: it is too slow.* UPSTREAM_CONNECT_TIMEOUT_MS\.$/;
      for (const kind of ['silent', 'slow-body'] as const) {
        expect(await faultOf(kind, {}, hasty)).toMatch(late);
      }
      const upstream = await start({ delayInitializeMs: 60_000 });
      expect(await errorOf(upstream.url, hasty)).toMatch(late);
      await upstream.waitFor(({ requests }) => requests.some(({ aborted }) => aborted));
      expect(Date.now() - startedAt).toBeGreaterThanOrEqual(3 * CONNECT_MS - 50);
      expect(Date.now() - startedAt).toBeLessThan(60_000);
    },
  );

  verifies(
    'connection:error:private-address',
    'a closed address is refused by name, with the setting that opens it',
    async () => {
      for (const [host, kind] of [
        ['10.0.0.7', 'private'],
        ['127.0.0.1', 'loopback'],
        ['169.254.169.254', 'cloud metadata'],
        ['[fd00::1]', 'unique local'],
      ]) {
        const message = await errorOf(`http://${host}:8080/mcp`, strict);
        expect(message).toContain(`The address of "http://${host}:8080" is ${kind}`);
        expect(message).toMatch(/An operator can allow it by adding .* to EGRESS_ALLOW/);
      }
    },
  );

  verifies('connection:state:error', 'a refusal with characters that Postgres cannot store is reported', async () => {
    const server = createServer((_req, res) => {
      res.writeHead(200, { 'content-type': 'application/json' });
      res.end(JSON.stringify({ jsonrpc: '2.0', id: 1, error: { code: -32000, message: 'no\0t for \ud800 you' } }));
    });
    const port = await listen(server);
    closing({ close: () => shut(server) });
    expect(await errorOf(`http://127.0.0.1:${port}/mcp`)).not.toContain('\0');
    // Statuses are written together: one that cannot be written must not hold up the others.
    const upstream = await start();
    const { path } = await createConnection(app, owner, { mcpUrl: upstream.url });
    await upstream.close();
    await app.as(owner).post(`${path}/.tools/echo`, { message: 'hi' }).expect(502);
    expect((await app.as(owner).get(path)).body).toMatchObject({ status: { state: 'error' } });
  });

  verifies(
    'connection:state:error',
    'each kind of failure has its own message, which states the problem and contains no secret',
    async () => {
      const kinds: FaultKind[] = [
        ...([
          'html',
          'not-found',
          'forbidden',
          'server-error',
          'unavailable',
          'redirect',
          'silent',
          'hangs-up',
        ] as const),
        ...(['empty', 'garbage', 'not-rpc', 'too-big', 'tls-self-signed', 'bad-protocol-version'] as const),
      ];
      const urls: [string, string, TestApp][] = [
        ['dead host', deadHost, app],
        ['refused port', await refusedPort(), app],
        ['private address', 'http://10.0.0.7/mcp', strict],
      ];
      for (const kind of kinds) {
        urls.push([kind, closing(await startFaulty(kind)).url, kind === 'silent' ? hasty : app]);
      }
      const kindsOf = new Map<string, string[]>();
      for (const [kind, url, process] of urls) {
        const secret = uniqueName('secret');
        const message = await errorOf(`${url}?key=${secret}`, process);
        expect(message).not.toContain(secret);
        expect(message).toMatch(/^[A-Za-z0-9].{30,}[.?]$/s);
        // The same words about another address are the same sentence.
        const { host } = new URL(url);
        const sentence = message.replaceAll(host, 'HOST').replaceAll(new URL(url).hostname, 'HOST');
        kindsOf.set(sentence, [...(kindsOf.get(sentence) ?? []), kind]);
      }
      const shared = [...kindsOf].filter(([, those]) => those.length > 1);
      expect(shared).toEqual([]);
    },
  );

  verifies(
    ['connection:state:error', 'connection:state:connected'],
    'a connection recovers by itself when its server is back',
    async () => {
      const upstream = await start({ delayInitializeMs: 60_000 });
      const { path } = await createConnection(hasty, owner, { mcpUrl: upstream.url });
      expect((await app.as(owner).get(path)).body).toMatchObject({ status: { state: 'error' } });
      const { url } = await start();
      await app.database.query('UPDATE connections SET mcp_url = $1, revision = revision + 1 WHERE mcp_url = $2', [
        url,
        upstream.url,
      ]);
      const call = () => app.as(owner).post(`${path}/.tools/echo`, { message: 'hi' });
      await until(async () => (await call()).status === 200, 'the server is called again');
      const { status } = (await app.as(owner).get(path)).body as { status: Status };
      expect(status).toMatchObject({ state: 'connected', reason: 'ok' });
    },
  );
});
