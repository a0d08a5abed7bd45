import { randomBytes } from 'node:crypto';
import { describe, expect } from '@jest/globals';
import { testAccount, testApp, uniqueName } from '../../support/app.js';
import type { Json } from '../../support/mcp/calls.js';
import { expectAlike, notFound } from '../../support/database/connection-rows.js';
import { createConnection } from '../../support/factories.js';
import { sendJson, startScripted, type ScriptedUpstream } from '../../support/special-upstreams/scripted-upstream.js';
import { closing, start } from '../../support/upstream/upstream-clients.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const owner = testAccount(app);
const other = testAccount(app);

const secret = `whsec_${randomBytes(24).toString('base64')}`;
const url = 'https://127.0.0.1:8443/hooks';
const events = [
  {
    name: 'page.updated',
    description: 'A page changed',
    delivery: ['webhook'],
    inputSchema: { type: 'object' },
    own: 1,
  },
  { name: 'plain' },
  { description: 'without a name' },
];

/** A server with triggers; what it is asked stands in `seen`. */
async function startEvents(refusal?: { code: number; message: string }): Promise<ScriptedUpstream> {
  return closing(
    await startScripted(({ id, method }, res) => {
      if (method === 'ai.smithery/events/list') return JSON.stringify({ events });
      if (refusal) return sendJson(res, JSON.stringify({ jsonrpc: '2.0', id, error: refusal }));
      return method === 'ai.smithery/events/subscribe' ? '{"refreshBefore":"2030-01-01T00:00:00Z"}' : '{}';
    }),
  );
}

const connect = async (mcpUrl: string): Promise<string> => (await createConnection(app, owner, { mcpUrl })).path;

function asked({ seen }: ScriptedUpstream, what: string): unknown[] {
  return seen.filter(({ method }) => method === `ai.smithery/events/${what}`).map(({ params }) => params);
}

describe('success', () => {
  verifies('events:triggers', 'triggers of a server that has them are listed and read', async () => {
    const path = await connect((await startEvents()).url);
    const page = {
      name: 'page.updated',
      delivery: ['webhook'],
      description: 'A page changed',
      inputSchema: { type: 'object' },
    };
    expect((await app.as(owner).get(`${path}/.triggers`)).body).toEqual([
      page,
      { name: 'plain', delivery: ['webhook'] },
    ]);
    expect((await app.as(owner).get(`${path}/.triggers/page.updated`)).body).toEqual(page);
    const missing = await app.as(owner).get(`${path}/.triggers/none`);
    expect([missing.status, missing.body]).toEqual([404, notFound]);
  });

  for (const options of [{}, { modernOnly: true }]) {
    verifies('events:triggers', `a server without triggers has an empty list ${JSON.stringify(options)}`, async () => {
      const path = await connect((await start(options)).url);
      const { status, body } = await app.as(owner).get(`${path}/.triggers`);
      expect([status, body]).toEqual([200, []]);
      expect((await app.as(owner).get(`${path}/.triggers/any`)).status).toBe(404);
      expect((await app.as(owner).post(`${path}/.triggers/any`, { delivery: { url, secret } })).body).toEqual(notFound);
    });
  }

  verifies('trigger:subscribe', 'a subscription is passed on under an id that depends on its key alone', async () => {
    const upstream = await startEvents();
    const path = await connect(upstream.url);
    const subscribe = async (params: object | undefined, to = url): Promise<Json> => {
      const { status, body } = await app
        .as(owner)
        .post(`${path}/.triggers/plain`, { params, delivery: { url: to, secret } });
      expect(status).toBe(200);
      return body;
    };
    const first = await subscribe({ b: [1, { y: 2, x: 1 }], a: 'z' });
    expect(first).toEqual({
      id: expect.stringMatching(/^trg_[0-9a-f]{32}$/),
      refreshBefore: '2030-01-01T00:00:00.000Z',
    });
    expect(asked(upstream, 'subscribe')).toEqual([
      {
        id: first.id,
        name: 'plain',
        params: { b: [1, { y: 2, x: 1 }], a: 'z' },
        delivery: { mode: 'webhook', url, secret },
      },
    ]);
    expect((await subscribe({ a: 'z', b: [1, { x: 1, y: 2 }] })).id).toBe(first.id);
    const others = [await subscribe(undefined), await subscribe({ a: 'z' }), await subscribe({ a: 'z' }, `${url}/2`)];
    expect(new Set([first.id, ...others.map(({ id }) => id)]).size).toBe(4);
    const ended = await app.as(owner).delete(`${path}/.triggers/plain`).send({ delivery: { url } });
    expect([ended.status, ended.body]).toEqual([200, { success: true }]);
    expect(asked(upstream, 'unsubscribe')).toEqual([
      { id: others[0].id, name: 'plain', params: {}, delivery: { mode: 'webhook', url } },
    ]);
  });
});

describe('validation', () => {
  verifies('trigger:validation', 'an invalid subscription is refused before a request to the server', async () => {
    const upstream = await startEvents();
    const path = await connect(upstream.url);
    const bodies: object[] = [
      {},
      { delivery: { url } },
      { delivery: { secret } },
      { delivery: { url: 'http://127.0.0.1/hook', secret } },
      { delivery: { url: 'https://', secret } },
      { delivery: { url: 'https://user:pass@127.0.0.1/', secret } },
      { delivery: { url: 'https://169.254.169.254/', secret } },
      { delivery: { url: 'https://10.0.0.1/', secret } },
      { delivery: { url, secret: 'whsec_' } },
      { delivery: { url, secret: `whsec_${randomBytes(23).toString('base64')}` } },
      { delivery: { url, secret: `whsec_${randomBytes(65).toString('base64')}` } },
      { delivery: { url, secret: `whsec_${'!'.repeat(40)}` } },
      { delivery: { url, secret: randomBytes(24).toString('base64') } },
      { delivery: { url, secret }, params: [] },
      { delivery: { url, secret }, params: { long: 'x'.repeat(17_000) } },
      { delivery: { url, secret }, mode: 'poll' },
      { delivery: { url, secret, mode: 'poll' } },
    ];
    for (const given of bodies) {
      const { status, body } = await app.as(owner).post(`${path}/.triggers/plain`, given);
      expect([given, status, body.error]).toEqual([given, 400, 'validation_error']);
    }
    const { status } = await app
      .as(owner)
      .delete(`${path}/.triggers/plain`)
      .send({ delivery: { url: 'ftp://x' } });
    expect(status).toBe(400);
    expect(upstream.seen.filter(({ method }) => method?.includes('subscribe'))).toEqual([]);
  });

  verifies('trigger:refused', 'an unknown trigger is 404, and a refusal does not repeat the secret', async () => {
    const body = { delivery: { url, secret } };
    const fine = await connect((await startEvents()).url);
    expect((await app.as(owner).post(`${fine}/.triggers/none`, body)).body).toEqual(notFound);
    const picky = await connect((await startEvents({ code: -32602, message: `params are wrong ${secret}` })).url);
    const invalid = await app.as(owner).post(`${picky}/.triggers/plain`, body);
    expect([invalid.status, invalid.text]).toEqual([400, expect.stringMatching(/params are wrong …/)]);
    const failing = await connect((await startEvents({ code: -32603, message: `broken ${secret}` })).url);
    const failed = await app.as(owner).post(`${failing}/.triggers/plain`, body);
    expect([failed.status, failed.text]).toEqual([502, expect.stringMatching(/broken …/)]);
    const halfway = await connect((await startEvents({ code: -32601, message: 'no such method' })).url);
    expect((await app.as(owner).delete(`${halfway}/.triggers/plain`).send({ delivery: { url } })).status).toBe(404);
  });
});

describe('ownership', () => {
  verifies('trigger:own', 'foreign triggers and missing ones have the same answer', async () => {
    const path = await connect((await startEvents()).url);
    const nowhere = path.replace(/[^/]+$/, uniqueName());
    const body = { delivery: { url, secret } };
    for (const suffix of ['/.triggers', '/.triggers/plain']) {
      const [foreign, missing] = [await app.as(other).get(path + suffix), await app.as(other).get(nowhere + suffix)];
      expect([suffix, foreign.status, missing.body]).toEqual([suffix, 404, notFound]);
      expectAlike(foreign, missing);
    }
    expect((await app.as(other).post(`${path}/.triggers/plain`, body)).body).toEqual(notFound);
    expect((await app.as(other).delete(`${path}/.triggers/plain`).send({ delivery: { url } })).body).toEqual(notFound);
    expect((await app.as().get(`${path}/.triggers`)).status).toBe(401);
  });
});
