import { beforeAll, describe, expect, jest } from '@jest/globals';
import { ApiKeysService } from '../../../src/modules/auth/api-keys.service.js';
import { PubSub } from '../../../src/platform/queue/pub-sub.js';
import { testAccount, testApp, uniqueName, type TestAccount, type TestApp } from '../../support/app.js';
import { pathOf } from '../../support/database/server-rows.js';
import { createConnection, createNamespace, createOrganization, createServer } from '../../support/factories.js';
import { mcpAccept, request, send } from '../../support/mcp/calls.js';
import { initialize, modern, post } from '../../support/mcp/mcp-calls.js';
import { publishExternal } from '../../support/releases/releases.js';
import { until } from '../../support/until.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { aloneVerifies, verifies } from '../../support/verifies.js';

/** The longest time for which something stays open after its right. */
const END_MS_MAX = 5_000;

const app = testApp();
/** Another process. */
let second: TestApp;
const owner = testAccount(app);
const other = testAccount(app);
let upstream: Upstream;

beforeAll(async () => {
  second = await app.sibling();
  upstream = await startUpstream();
});

type Ask = Promise<{ status: number; body: unknown }>;

/** Something that ends the right of an account to call something. */
interface Loss {
  account: TestAccount;
  /** The endpoint that the account may call. */
  path: string;
  end: () => Ask;
  /** The name of the tool at the endpoint. */
  tool?: string;
  /** What the account may still call there. */
  still?: string;
}

const grant = async (at: string, body: object) => {
  const { status, body: made } = await app.as(owner).post(`${at}/grants`, body);
  expect([200, 201]).toContain(status);
  return (made as { id: string }).id;
};
const suspend = (at: string) => app.as(app.operator).put(`${at}/suspension`, { reason: 'spec' });
const connect = (by: TestAccount, namespace?: string) =>
  createConnection(app, by, { mcpUrl: upstream.url }, { namespace });

async function granted(terms: object = {}) {
  const account = await app.account();
  const { path, namespace } = await connect(owner);
  const id = await grant(path, { account: account.id, level: 'call', ...terms });
  return { account, path, namespace, id };
}

async function published(visibility: string) {
  const account = await app.account();
  const server = await createServer(app, owner, { visibility });
  await publishExternal(app, owner, server, { upstreamUrl: upstream.url });
  return { account, at: pathOf(server), namespace: server.split('/')[0], path: `/run/${server.replace('/', '--')}` };
}

/** A connection of an organization that the account calls as its member, beside an owner. */
async function joined(role: 'owner' | 'editor' | 'member') {
  const [account, head] = [await app.account(), await app.account()];
  const organization = await createOrganization(app, { owner: head });
  const at = `/accounts/${organization.id}/members/${account.id}`;
  await app.as(app.operator).put(at, { role }).expect(200);
  return { account, head, organization, at, ...(await connect(organization)) };
}

/** By what was lost. */
const losses: Record<string, () => Promise<Loss>> = {
  'a withdrawn grant': async () => {
    const { account, path, id } = await granted();
    return { account, path, end: () => app.as(owner).delete(`${path}/grants/${id}`) };
  },
  'a grant of another tool': async () => {
    const { account, path } = await granted({ tools: { allow: ['hold', 'raw'] } });
    const terms = { account: account.id, level: 'call', tools: { allow: ['raw'] } };
    return { account, path, still: 'raw', end: () => app.as(owner).post(`${path}/grants`, terms) };
  },
  'the grant of the tool, beside another one': async () => {
    const { account, path, namespace } = await granted({ tools: { allow: ['raw'] } });
    const at = `/namespaces/${namespace}`;
    const id = await grant(at, { account: account.id, level: 'call', tools: { allow: ['hold'] } });
    return { account, path, still: 'raw', end: () => app.as(owner).delete(`${at}/grants/${id}`) };
  },
  'a grant of the namespace': async () => {
    const account = await app.account();
    const { path, namespace } = await connect(owner);
    const at = `/namespaces/${namespace}`;
    const id = await grant(at, { account: account.id, level: 'call' });
    return { account, path, end: () => app.as(owner).delete(`${at}/grants/${id}`) };
  },
  'a grant, at the endpoint of the namespace': async () => {
    const account = await app.account();
    const { namespace, connectionId } = await connect(owner);
    const at = `/namespaces/${namespace}`;
    const id = await grant(at, { account: account.id, level: 'call' });
    const end = () => app.as(owner).delete(`${at}/grants/${id}`);
    return { account, path: `/connect/${namespace}/.mcp`, tool: `${connectionId}__hold`, end };
  },
  'a suspended connection': async () => {
    const { account, path } = await granted();
    return { account, path, end: () => suspend(path) };
  },
  'a suspended connection, of its owner': async () => {
    const { path } = await connect(owner);
    return { account: owner, path, end: () => suspend(path) };
  },
  'a deleted connection': async () => {
    const { account, path } = await granted();
    return { account, path, end: () => app.as(owner).delete(path) };
  },
  'a suspended namespace': async () => {
    const { path, namespace } = await connect(owner);
    return { account: owner, path, end: () => suspend(`/namespaces/${namespace}`) };
  },
  'a suspended namespace, at its endpoint': async () => {
    const { namespace, connectionId } = await connect(owner);
    const path = `/connect/${namespace}/.mcp`;
    return { account: owner, path, tool: `${connectionId}__hold`, end: () => suspend(`/namespaces/${namespace}`) };
  },
  'a moved namespace': async () => {
    const { account, head, path, namespace } = await joined('owner');
    const others = await createOrganization(app, { owner: head });
    const end = () => app.as(head).patch(`/namespaces/${namespace}`, { organizationId: others.id });
    return { account, path, end };
  },
  'an organization that was handed over': async () => {
    const { account, organization, path } = await joined('member');
    const to = (await createOrganization(app, { owner: other })).id;
    return { account, path, end: () => app.as(app.operator).post(`/accounts/${organization.id}/transfer`, { to }) };
  },
  'an ended membership': async () => {
    const { account, head, at, path } = await joined('editor');
    return { account, path, end: () => app.as(head).delete(at) };
  },
  'a role': async () => {
    const { account, head, at, path } = await joined('editor');
    return { account, path, end: () => app.as(head).put(at, { role: 'guest' }) };
  },
  'a disabled account': async () => {
    const { account, path } = await granted();
    return { account, path, end: () => app.as(app.operator).patch(`/accounts/${account.id}`, { disabled: true }) };
  },
  'a revoked key': async () => {
    const { path } = await connect(owner);
    const { body } = await app.as(owner).post('/accounts/me/api-keys', { name: 'spec' });
    const account = { ...owner, key: body.key as string };
    return { account, path, end: () => app.as(owner).delete(`/accounts/me/api-keys/${body.id}`) };
  },
  'a deleted account': async () => {
    const { account, path } = await granted();
    return { account, path, end: () => app.as(app.operator).delete(`/accounts/${account.id}`) };
  },
  'a server that was transferred': async () => {
    const [account, head] = [await app.account(), await app.account()];
    const organization = await createOrganization(app, { owner: head, member: account });
    const server = await createServer(app, organization, { visibility: 'private' });
    await publishExternal(app, organization, server, { upstreamUrl: upstream.url });
    const namespace = await createNamespace(app, head);
    const path = `/run/${server.replace('/', '--')}`;
    return {
      account,
      path,
      end: () =>
        app.as(head).post(`${pathOf(server)}/transfer`, { targetOrganizationId: head.id, targetNamespace: namespace }),
    };
  },
  'a grant of a server': async () => {
    const { account, at, path } = await published('private');
    const id = await grant(at, { account: account.id, level: 'call' });
    return { account, path, end: () => app.as(owner).delete(`${at}/grants/${id}`) };
  },
  'a grant of another tool of a server': async () => {
    const { account, at, path } = await published('private');
    await grant(at, { account: account.id, level: 'call' });
    const terms = { account: account.id, level: 'call', tools: { allow: ['raw'] } };
    return { account, path, still: 'raw', end: () => app.as(owner).post(`${at}/grants`, terms) };
  },
  'a server that became private': async () => {
    const { account, at, path } = await published('public');
    return { account, path, end: () => app.as(owner).patch(at, { visibility: 'private' }) };
  },
  'a suspended server': async () => {
    const { account, at, path } = await published('public');
    return { account, path, end: () => suspend(at) };
  },
  'a deleted server': async () => {
    const { account, at, path } = await published('public');
    return { account, path, end: () => app.as(owner).delete(at) };
  },
  'a server in a suspended namespace': async () => {
    const { account, namespace, path } = await published('public');
    return { account, path, end: () => suspend(`/namespaces/${namespace}`) };
  },
};

const endpointOf = (path: string) => (/^\/run|\.mcp$/.test(path) ? path : `${path}/mcp`);

/** The names of the tools that an account may call at each interface of an endpoint; the status where it may call none. */
const names = async (on: TestApp, account: TestAccount, path: string): Promise<unknown[]> => {
  const mcp = await send(on, account, endpointOf(path), request(1, 'tools/list'), { headers: mcpAccept });
  const rest =
    endpointOf(path) === path ? null : await send(on, account, `${path}/.tools`, undefined, { method: 'GET' });
  return [mcp.body.result?.tools ?? mcp.status, ...(rest ? [rest.body.tools ?? rest.status] : [])].map((tools) =>
    Array.isArray(tools) ? tools.map(({ name }: { name: string }) => name).join() : tools,
  );
};

/** Begins a call that is not answered. @returns resolves when it has ended */
async function call({ url }: TestApp, { path, tool = 'hold', account }: Omit<Loss, 'end'>): Promise<() => boolean> {
  const token = uniqueName('token');
  const { body, headers } = modern('tools/call', { name: tool, arguments: { token } });
  let isOver = false;
  const authorization = `Bearer ${account.key}`;
  const answer = post(`${url}${endpointOf(path)}`, body, { ...headers, authorization })
    .then(async (response) => `${response.status} ${await response.text()}`)
    .catch(String)
    .finally(() => (isOver = true));
  const hasArrived = () => upstream.requests.some(({ raw }) => raw.includes(token));
  await until(() => isOver || hasArrived(), 'the call has arrived');
  if (!hasArrived()) throw new Error(`The call was not made: ${path} ${await answer}`);
  return () => isOver;
}

/** Opens the stream of a session. @returns tells whether it has ended */
async function stream({ url }: TestApp, { path, account }: Pick<Loss, 'path' | 'account'>): Promise<() => boolean> {
  const authorization = `Bearer ${account.key}`;
  const session = await initialize(`${url}${endpointOf(path)}`, {}, '2025-06-18', authorization);
  const response = await fetch(`${url}${endpointOf(path)}`, {
    headers: { ...session, authorization, accept: 'text/event-stream' },
  });
  expect(response.status).toBe(200);
  let isOver = false;
  void response
    .text()
    .catch(() => undefined)
    .finally(() => (isOver = true));
  return () => isOver;
}

describe('a revoked right', () => {
  verifies(
    'rights:ended-now',
    'is rejected as soon as the revoking request has returned, elsewhere in 5 s',
    async () => {
      for (const [what, prepare] of Object.entries(losses)) {
        const { account, path, end, still } = await prepare();
        // Twice: a second handle is cached as well.
        for (const on of [app, app, second]) {
          for (const listed of await names(on, account, path))
            expect([what, listed]).toEqual([what, expect.any(String)]);
        }
        const { status, body } = await end();
        const next = await names(app, account, path);
        expect([what, status, body]).toEqual([what, 200, body]);
        const left = still ?? expect.any(Number);
        for (const listed of next) expect([what, listed]).toEqual([what, left]);
        await until(
          async () => (await names(second, account, path)).every((listed) => listed === (still ?? Number(listed))),
          `${what} ends it in the other process`,
          END_MS_MAX,
        );
      }
    },
  );

  aloneVerifies('rights:ended-open', 'closes the calls and streams that it opened, in every process', async () => {
    const rows = await Promise.all(
      Object.entries(losses).map(async ([what, prepare]) => {
        const loss = await prepare();
        const open: Record<string, () => boolean> = {};
        for (const [where, on] of Object.entries({ here: app, elsewhere: second })) {
          open[`call ${where}`] = await call(on, loss);
          open[`stream ${where}`] = await stream(on, loss);
        }
        return { what, loss, open };
      }),
    );
    for (const { what, open } of rows)
      expect([what, Object.values(open).map((isOver) => isOver())]).toEqual([what, [false, false, false, false]]);
    const left = () =>
      rows.flatMap(({ what, open }) =>
        Object.entries(open).flatMap(([name, isOver]) => (isOver() ? [] : [`${name}: ${what}`])),
      );
    await Promise.all(rows.map(({ loss }) => loss.end()));
    await until(() => left().length === 0, 'all has ended', END_MS_MAX).catch(() => undefined);
    expect(left()).toEqual([]);
  });

  verifies('rights:ended-open', 'begins no check of open requests while another runs', async () => {
    const isOver = await stream(app, { account: owner, path: (await connect(owner)).path });
    const apiKeys = app.get(ApiKeysService);
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    const memberships = apiKeys.membershipsAmong.bind(apiKeys);
    const checks = jest
      .spyOn(apiKeys, 'membershipsAmong')
      .mockImplementation((ids) => released.then(() => memberships(ids)));
    const change = { accountId: other.id };
    for (let count = 0; count < 50; count += 1) app.get(PubSub).announce('auth.account-changed', change);
    await until(() => checks.mock.calls.length > 0, 'a check has begun');
    // One of them, and the scheduled one.
    expect(checks.mock.calls.length).toBeLessThanOrEqual(2);
    release();
    checks.mockRestore();
    expect(isOver()).toBe(false);
  });

  verifies('rights:ended-open', 'closes no request that another right has opened', async () => {
    const { account, path } = await granted({ tools: { allow: ['hold', 'raw'] } });
    const mine = (await connect(account)).path;
    const organization = await createOrganization(app, { owner, member: account });
    const open = [
      await call(app, { account, path }),
      await call(app, { account, path: mine }),
      await stream(app, { account, path: mine }),
    ];
    const at = `/accounts/${organization.id}/members/${account.id}`;
    await app.as(owner).put(at, { role: 'guest' }).expect(200);
    await app.as(owner).delete(at).expect(200);
    await grant(path, { account: account.id, level: 'call', tools: { allow: ['hold'] } });
    // Opened later, and ended by the same checks.
    const ended = await granted();
    const over = await call(app, ended);
    await app.as(owner).delete(`${ended.path}/grants/${ended.id}`).expect(200);
    await until(over, 'a call without a right has ended');
    expect(open.map((isOver) => isOver())).toEqual([false, false, false]);
  });
});
