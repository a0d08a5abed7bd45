import { describe, expect } from '@jest/globals';
import type { DiagnosisDto } from '../../../src/modules/connections/diagnosis/diagnosis.dto.js';
import { testAccount, testApp, uniqueName } from '../../support/app.js';
import { expectAlike, notFound } from '../../support/database/connection-rows.js';
import { publishExternal } from '../../support/releases/current-releases.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import {
  deadHost,
  refusedPort,
  startFaulty,
  type FaultKind,
} from '../../support/special-upstreams/faulty-upstreams.js';
import { sendJson, startScripted } from '../../support/special-upstreams/scripted-upstream.js';
import { personAt } from '../../support/people/credentials.js';
import {
  startQuirky,
  type Quirk,
  type QuirkyAnswer,
  type QuirkyEndpoint,
} from '../../support/people/quirky-provider.js';
import { until } from '../../support/until.js';
import { closing, start } from '../../support/upstream/upstream-clients.js';
import { verifies } from '../../support/verifies.js';

const app = testApp({ UPSTREAM_CONNECT_TIMEOUT_MS: '5000' });
const owner = testAccount(app);
const other = testAccount(app);

async function diagnose(path: string, from = app): Promise<DiagnosisDto> {
  const { status, body } = await from.as(owner).get(`${path}/diagnosis`);
  expect({ status, body: body as unknown }).toMatchObject({ status: 200 });
  return body as DiagnosisDto;
}

async function connect(mcpUrl: string, fields: object = {}): Promise<string> {
  return (await createConnection(app, owner, { mcpUrl, ...fields })).path;
}

/** Each step with what became of it. */
const walk = ({ steps }: DiagnosisDto) => steps.map(({ step, status }) => `${step} ${status}`).join(', ');
const evidence = ({ steps }: DiagnosisDto, name: string) => steps.find(({ step }) => step === name)?.evidence ?? '';

const WHOLE = 'target ok, dns skipped, guard ok, connect ok, tls skipped, http ok, era ok, authorization ok, list ok';

/** The walk to a loopback address that stops at a step. */
function stopped(at: string): string {
  const states = WHOLE.split(', ');
  const place = states.findIndex((one) => one.startsWith(at));
  return states
    .map((one, i) => (i < place ? one : `${one.split(' ')[0]} ${i === place ? 'failed' : 'skipped'}`))
    .join(', ');
}

describe('the way to a server', () => {
  for (const options of [{}, { modernOnly: true }]) {
    verifies('diagnosis:steps', `is walked to its end ${JSON.stringify(options)}`, async () => {
      const upstream = await start(options);
      const diagnosis = await diagnose(await connect(upstream.url));
      expect(walk(diagnosis)).toBe(WHOLE);
      expect(evidence(diagnosis, 'era')).toMatch(/^It speaks MCP 202\d-\d\d-\d\d/);
      expect(diagnosis).toMatchObject({ target: 'url', verdict: 'Everything works: it lists 13 tools.' });
      expect(diagnosis.steps.every(({ ms }) => Number.isInteger(ms) && ms >= 0)).toBe(true);
      expect(upstream.count('tools/call')).toBe(0);
    });
  }

  verifies(
    ['diagnosis:steps', 'diagnosis:nothing-secret'],
    'is checked for a registry server without revealing its host',
    async () => {
      const server = await createServer(app, owner);
      await publishExternal(app, server, (await start()).url);
      const namespace = await createNamespace(app, owner);
      const path = `/connect/${namespace}/to-server`;
      expect((await app.as(owner).put(path, { server })).status).toBe(201);
      const fine = await diagnose(path);
      expect([walk(fine), fine.target]).toEqual([WHOLE, 'server']);
      const dead = await refusedPort();
      await publishExternal(app, server, dead);
      const broken = await until(async () => {
        const now = await diagnose(path);
        return walk(now) === stopped('connect') && now;
      }, 'the new release is known');
      expect(broken.verdict).toContain('publisher');
      for (const told of [fine, broken]) expect(JSON.stringify(told)).not.toContain('127.0.0.1');
      await app.as(owner).delete(`/servers/${encodeURIComponent(server)}`);
      const gone = await until(async () => {
        const now = await diagnose(path);
        return now.steps[0].status === 'failed' && now;
      }, 'the deletion is known');
      expect(gone.verdict).toMatch(/delete the connection/);
    },
  );

  verifies(['diagnosis:steps', 'diagnosis:session-in-use'], 'stops where it is broken', async () => {
    const cases: [FaultKind, string, RegExp][] = [
      ['html', 'http', /path/],
      ['not-found', 'http', /path/],
      ['forbidden', 'authorization', /headers/],
      ['needs-auth', 'authorization', /setupUrl/],
      ['hangs-up', 'http', /log of the MCP server/],
      ['silent', 'http', /log of the MCP server/],
    ];
    for (const [kind, step, advice] of cases) {
      const path = await connect(closing(await startFaulty(kind)).url);
      const diagnosis = await diagnose(path);
      const failed = diagnosis.steps.filter(({ status }) => status === 'failed');
      expect([kind, failed.map((one) => one.step), diagnosis.verdict]).toEqual([
        kind,
        [step],
        expect.stringMatching(advice),
      ]);
      expect(diagnosis.verdict).toMatch(new RegExp(`^It stops at ${step}: `));
      expect(evidence(diagnosis, 'list')).toMatch(/^Skipped/);
      expect(diagnosis.status).toMatchObject({ message: failed[0].evidence });
    }
    const refused = await diagnose(await connect(await refusedPort()));
    expect(walk(refused)).toBe(stopped('connect'));
    const nowhere = await diagnose(await connect(deadHost));
    expect(nowhere.steps.find(({ status }) => status === 'failed')).toMatchObject({ step: 'dns' });
    const untrusted = await diagnose(await connect(closing(await startFaulty('tls-self-signed')).url));
    expect(walk(untrusted)).toMatch(/connect ok, tls failed, http skipped/);
  });

  verifies('diagnosis:steps', 'stops at an unknown revision, and at a list without a result', async () => {
    const odd = closing(
      await startScripted((message, res) => {
        if (message.method === 'tools/list') {
          sendJson(res, `{"jsonrpc":"2.0","id":${message.id},"error":{"code":-32000,"message":"no list today"}}`);
        }
      }),
    );
    const list = await diagnose(await connect(odd.url));
    expect([walk(list), evidence(list, 'list')]).toEqual([stopped('list'), expect.stringMatching(/no list today/)]);
  });

  verifies(
    'diagnosis:session-in-use',
    'opens another session where the server has lost that of calls, as calls do',
    async () => {
      let lost = '';
      const upstream = closing(
        await startScripted(
          ({ session }, res) => {
            if (session !== lost) return '{"tools":[]}';
            res.writeHead(400, { 'content-type': 'text/plain' }).end('No such session');
          },
          { sessions: true },
        ),
      );
      const path = await connect(upstream.url);
      expect(walk(await diagnose(path))).toBe(WHOLE);
      lost = 'session-1';
      const healed = await diagnose(path);
      expect([walk(healed), healed.status.state]).toEqual([WHOLE, 'connected']);
    },
  );

  verifies(
    'diagnosis:steps',
    'an uplink without a tunnel and a stored module are described by their kind',
    async () => {
      const namespace = await createNamespace(app, owner);
      await app.as(owner).put(`/connect/${namespace}/local`, { transport: 'uplink' });
      const uplink = await diagnose(`/connect/${namespace}/local`);
      expect(walk(uplink)).toBe('target ok, tunnel failed, era skipped, list skipped');
      expect(uplink).toMatchObject({ target: 'uplink', verdict: expect.stringMatching(/smithery mcp add/) });
      const file = { path: 'index.ts', contents: `export default { fetch: () => new Response('hello') }` };
      const source = { kind: 'module', entrypoint: 'index.ts', sourceFiles: [file] };
      await app.as(owner).put(`/connect/${namespace}/module`, { source });
      expect(walk(await diagnose(`/connect/${namespace}/module`))).toBe('target ok, era failed, list skipped');
    },
  );
});

describe('secrets and bounds', () => {
  verifies('diagnosis:nothing-secret', 'values that a server echoes are not shown', async () => {
    const secret = 'tell-nobody-of-me';
    const parrot = closing(
      await startScripted((message, res) => {
        sendJson(
          res,
          `{"jsonrpc":"2.0","id":${message.id},"error":{"code":-32000,"message":"bad key ${secret} and ${secret}2"}}`,
        );
      }),
    );
    const path = await connect(`${parrot.url}?q=${secret}2`, { headers: { Authorization: `Bearer ${secret}` } });
    const diagnosis = await diagnose(path);
    expect(evidence(diagnosis, 'list')).toMatch(/bad key/);
    expect(JSON.stringify(diagnosis.steps) + diagnosis.verdict).not.toContain(secret);
  });

  verifies('diagnosis:nothing-secret', 'a refused address is reported by its kind and not by its value', async () => {
    const path = await connect((await start()).url.replace('127.0.0.1', 'localhost'));
    const strict = await app.sibling({ EGRESS_ALLOW: '192.0.2.1' });
    try {
      const diagnosis = await diagnose(path, strict);
      expect(diagnosis.steps.find(({ status }) => status === 'failed')).toMatchObject({
        step: 'guard',
        evidence: expect.stringMatching(/loopback/),
      });
      expect(diagnosis.verdict).toMatch(/EGRESS_ALLOW/);
    } finally {
      await strict.close();
    }
  });

  verifies('diagnosis:bounded', 'a concurrent request shares the running diagnosis', async () => {
    const upstream = await start({ delayInitializeMs: 300 });
    const path = await connect(upstream.url);
    const opened = upstream.count('initialize');
    const all = await Promise.all([1, 2, 3, 4].map(() => diagnose(path)));
    for (const one of all) expect(one).toEqual(all[0]);
    expect(upstream.count('initialize')).toBe(opened + 1);
  });
});

describe('ownership', () => {
  verifies('diagnosis:own', 'a foreign connection and a missing one have the same answer', async () => {
    const path = await connect((await start()).url);
    const foreign = await app.as(other).get(`${path}/diagnosis`);
    const missing = await app.as(other).get(`${path.replace(/[^/]+$/, uniqueName())}/diagnosis`);
    expect([foreign.status, missing.body]).toEqual([404, notFound]);
    expectAlike(foreign, missing);
    expect((await app.as().get(`${path}/diagnosis`)).status).toBe(401);
  });
});

describe('a connection that needs a login', () => {
  verifies('diagnosis:login', 'reports how far the login gets, and the message of the provider', async () => {
    const provider = await startQuirky();
    const told = async (quirk: Quirk, body: object = {}) => {
      await app.database.query('DELETE FROM oauth_clients');
      provider.quirk = quirk;
      const path = await connect(provider.mcpUrl, body);
      const diagnosis = await diagnose(path);
      const [, steps] = /authorization failed, (.*), list skipped/.exec(walk(diagnosis)) ?? [];
      return { path, diagnosis, steps };
    };
    const replacing =
      (at: QuirkyEndpoint[], answer: QuirkyAnswer): Quirk =>
      ({ endpoint }) =>
        at.includes(endpoint) ? answer : undefined;
    const page = { status: 403, type: 'text/html', body: '<p>' };
    const unregistered: Quirk = ({ endpoint }, answer) =>
      endpoint === 'server'
        ? { ...answer, body: { ...(answer.body as object), registration_endpoint: null } }
        : undefined;
    const rows: [quirk: Quirk, steps: string, said: [step: string, words: RegExp], hasLink: boolean, body?: object][] =
      [
        [() => undefined, 'discovery ok, client ok, token skipped', ['client', /"the client", which the auth/], true],
        [
          replacing(['resource'], { body: { resource: 'https://elsewhere.example/mcp' } }),
          'discovery failed, client skipped, token skipped',
          ['discovery', /announces the resource "https:\/\/elsewhere\.example\/mcp"/],
          false,
        ],
        [
          replacing(['server', 'openid'], page),
          'discovery failed, client skipped, token skipped',
          ['discovery', /a firewall or proxy answered/],
          false,
        ],
        [
          replacing(['server', 'openid'], { status: 500, body: {} }),
          'discovery failed, client skipped, token skipped',
          ['discovery', /answered 500/],
          false,
        ],
        [
          replacing(['register'], { status: 503, body: {} }),
          'discovery ok, client failed, token skipped',
          ['client', /answered 503/],
          false,
        ],
        // The page asks for a client.
        [
          unregistered,
          'discovery ok, client failed, token skipped',
          ['client', /registers no clients by itself/],
          true,
        ],
        [
          unregistered,
          'discovery ok, client ok, token skipped',
          ['client', /"mine", which the owner chose/],
          true,
          { oauth: { clientId: 'mine' } },
        ],
        // The page takes a key.
        [
          replacing(['resource', 'server', 'openid', 'token'], { status: 404, body: {} }),
          'discovery skipped, client skipped, token skipped',
          ['discovery', /No authorization server was found/],
          true,
        ],
      ];
    for (const [quirk, steps, [step, words], hasLink, body] of rows) {
      const { diagnosis, ...seen } = await told(quirk, body);
      expect([words, seen.steps, evidence(diagnosis, step)]).toEqual([words, steps, expect.stringMatching(words)]);
      for (const text of [diagnosis.verdict, diagnosis.status.nextStep ?? '']) {
        expect([words, text, /open setupUrl/i.test(text)]).toEqual([words, text, hasLink]);
      }
    }
    const { path, diagnosis } = await told(() => undefined);
    const person = personAt(app);
    await person.open(diagnosis.status.setupUrl ?? '');
    expect((await person.press(diagnosis.status.setupUrl ?? '')).html).toContain('Authorized');
    expect(walk(await diagnose(path))).toBe(WHOLE);
    provider.quirk = replacing(['mcp', 'token'], {
      status: 401,
      headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
      body: { error: 'invalid_grant' },
    });
    const ended = await diagnose(path);
    expect(evidence(ended, 'token')).toMatch(/no longer accepts the authorization \(invalid_grant\)/);
    expect(ended.verdict).toMatch(/^It stops at authorization: open setupUrl/);
    await provider.close();
  });
});
