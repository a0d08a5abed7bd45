import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import type { DiagnosisDto } from '../../../src/modules/connections/diagnosis/diagnosis.dto.js';
import { startApp, uniqueName, type TestAccount, type TestApp } from '../../support/app.js';
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
import { until } from '../../support/until.js';
import { closing, start } from '../../support/upstream/upstream-clients.js';
import { verifies } from '../../support/verifies.js';

let app: TestApp;
let owner: TestAccount;
let other: TestAccount;

beforeAll(async () => {
  app = await startApp({ UPSTREAM_CONNECT_TIMEOUT_MS: '5000' });
  [owner, other] = [await app.account(), await app.account()];
});
afterAll(() => app.close());

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

  verifies('diagnosis:steps', 'stops where it is broken', async () => {
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
