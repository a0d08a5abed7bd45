import { ModulesContainer } from '@nestjs/core';
import { beforeAll, describe, expect } from '@jest/globals';
import { createApp } from '../../../src/app.setup.js';
import { checkRoutes } from '../../../src/modules/auth/access.service.js';
import { canonicalPath } from '../../../src/platform/http/canonical-path.js';
import { isNamespaceName, reservePath } from '../../../src/platform/http/resource-names.js';
import { routeTable, type Route } from '../../../src/platform/http/route-table.js';
import { testAccount, testApp, uniqueName, type TestAccount } from '../../support/app.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { rawRequest } from '../../support/mcp/raw-request.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const owner = testAccount(app);
const other = testAccount(app);
let upstream: Upstream;

beforeAll(async () => {
  upstream = await startUpstream();
});

async function routes(): Promise<Route[]> {
  return routeTable((await createApp(app.env, { preview: true })).get(ModulesContainer));
}

/** A namespace with a server `weather`, a namespace-only server and a connection `conn`. */
async function furnished(account: TestAccount): Promise<string> {
  const namespace = await createNamespace(app, account);
  await createServer(app, account, { namespace, server: 'weather' });
  await createServer(app, account, { namespace, server: '' });
  await createConnection(app, account, { mcpUrl: upstream.url }, { namespace, connectionId: 'conn' });
  return namespace;
}

describe('a qualified name in a path', () => {
  verifies(
    [
      'path:unencoded-slash',
      'path:leading-at',
      'path:trailing-slash',
      'name:encoded-slash',
      'name:two-part',
      'name:namespace-only',
    ],
    'reaches its server in every spelling of published clients, with every method',
    async () => {
      const namespace = await createNamespace(app, owner);
      const spellings: Record<string, string[]> = {
        [`${namespace}/weather`]: [
          ...[`${namespace}%2Fweather`, `${namespace}%2fweather`, `${namespace}/weather`, `${namespace}/weather/`],
          ...[
            `@${namespace}%2Fweather`,
            `%40${namespace}%2fweather`,
            `@${namespace}/weather`,
            `${namespace}%2Fweather%2F`,
          ],
          ...[`${namespace}/w%65ather`, `${namespace}%2Fweather?`, `${namespace}/weather#x`],
        ],
        [namespace]: [
          ...[namespace, `${namespace}%2F`, `${namespace}%2f`, `${namespace}/`, `@${namespace}`, `@${namespace}%2F`],
          ...[`%40${namespace}`, `${namespace}?&`],
        ],
      };
      for (const [qualifiedName, all] of Object.entries(spellings)) {
        for (const spelling of all) {
          const server = qualifiedName.split('/')[1] ?? '';
          const ask = async (method: string) => {
            const { status, text } = await rawRequest(app, owner, method, `/servers/${spelling}`);
            return [spelling, status, JSON.parse(text)];
          };
          expect(await ask('PUT')).toEqual([spelling, 201, expect.objectContaining({ namespace, server })]);
          expect(await ask('GET')).toEqual([spelling, 200, expect.objectContaining({ qualifiedName })]);
          expect(await ask('DELETE')).toEqual([spelling, 200, { success: true, namespace, server }]);
        }
      }
    },
  );

  verifies('server:detail:qualified-name', 'is returned in its canonical form, however it was spelled', async () => {
    const namespace = await furnished(owner);
    for (const spelling of [`@${namespace}/weather`, `${namespace}%2fweather`, `%40${namespace}/weather%2F`]) {
      const { text } = await rawRequest(app, other, 'GET', `/servers/${spelling}`);
      expect(JSON.parse(text)).toMatchObject({ qualifiedName: `${namespace}/weather` });
    }
    const { text } = await rawRequest(app, other, 'GET', `/servers/@${namespace}%2F`);
    expect(JSON.parse(text)).toMatchObject({ qualifiedName: namespace });
  });
});

/** A request below a namespace, and its status; `ours` defaults to the owner. */
interface ConnectRequest {
  path: string;
  body?: object;
  status: number;
  ours?: TestAccount;
}

/** Requests for every route of connections that change nothing when repeated, so that both forms of a path can be tried. */
function connectRequests(): Record<string, ConnectRequest[]> {
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
  return {
    'GET /connect/:namespace': [
      { path: '', status: 200 },
      { path: '/?limit=1&name=conn', status: 200 },
      { path: '?limit=0', status: 400 },
      { path: '', status: 404, ours: other },
    ],
    'GET /connect/:namespace/:connectionId': [
      { path: '/conn', status: 200 },
      { path: '/never', status: 404 },
      { path: '/conn', status: 404, ours: other },
    ],
    'PUT /connect/:namespace/:connectionId': [
      { path: '/conn', body: { mcpUrl: `${upstream.url}?other` }, status: 409 },
      { path: '/.conn', body: { mcpUrl: upstream.url }, status: 400 },
    ],
    'POST /connect/:namespace': [
      { path: '', body: { transport: 'pigeon' }, status: 400 },
      { path: '', body: { mcpUrl: upstream.url }, status: 404, ours: other },
    ],
    'DELETE /connect/:namespace/:connectionId': [{ path: '/never', status: 404 }],
    'GET /connect/:namespace/.tools': [{ path: '/.tools', status: 200 }],
    'GET /connect/:namespace/:connectionId/.tools': [{ path: '/conn/.tools', status: 200 }],
    'GET /connect/:namespace/:connectionId/.tools/*toolPath': [
      { path: '/conn/.tools/echo', status: 200 },
      { path: '/conn/.tools/never', status: 404 },
    ],
    'POST /connect/:namespace/:connectionId/.tools/*toolPath': [
      { path: '/conn/.tools/echo', body: { message: 'Hello' }, status: 200 },
      { path: '/conn/.tools/echo', body: { message: 'Hello' }, status: 404, ours: other },
    ],
    'POST /connect/:namespace/:connectionId/mcp': [
      { path: '/conn/mcp', body: ping, status: 200 },
      { path: '/conn/mcp/', body: ping, status: 200 },
      { path: '/never/mcp', body: ping, status: 404 },
    ],
    'GET /connect/:namespace/:connectionId/mcp': [{ path: '/conn/mcp', status: 405 }],
    'DELETE /connect/:namespace/:connectionId/mcp': [{ path: '/conn/mcp', status: 405 }],
    'POST /connect/:namespace/.mcp': [
      { path: '/.mcp', body: ping, status: 200 },
      { path: '/.mcp', body: ping, status: 404, ours: other },
    ],
    'GET /connect/:namespace/.mcp': [{ path: '/.mcp', status: 405 }],
    'DELETE /connect/:namespace/.mcp': [{ path: '/.mcp', status: 405 }],
    'GET /connect/:namespace/:connectionId/logs': [
      { path: '/conn/logs?limit=0', status: 400 },
      { path: '/conn/logs', status: 404, ours: other },
    ],
    'GET /connect/:namespace/:connectionId/diagnosis': [{ path: '/never/diagnosis', status: 404 }],
    'GET /connect/:namespace/:connectionId/uplink': [{ path: '/conn/uplink', status: 404 }],
    'GET /connect/:namespace/:connectionId/recording': [{ path: '/conn/recording', status: 200 }],
    'GET /connect/:namespace/:connectionId/recording/calls': [{ path: '/conn/recording/calls?limit=0', status: 400 }],
    'GET /connect/:namespace/:connectionId/recording/fixture': [{ path: '/conn/recording/fixture', status: 200 }],
    'PUT /connect/:namespace/:connectionId/recording': [{ path: '/conn/recording', body: { on: 1 }, status: 400 }],
    'PUT /connect/:namespace/:connectionId/suspension': [
      { path: '/conn/suspension', body: { reason: null }, status: 403 },
    ],
    'DELETE /connect/:namespace/:connectionId/recording': [{ path: '/never/recording', status: 404 }],
    'GET /connect/:namespace/:connectionId/grants': [{ path: '/conn/grants', status: 200 }],
    'POST /connect/:namespace/:connectionId/grants': [
      { path: '/conn/grants', body: { account: 'nobody', level: 'call' }, status: 404 },
    ],
    'DELETE /connect/:namespace/:connectionId/grants/:grantId': [{ path: '/conn/grants/none', status: 404 }],
    'GET /connect/:namespace/:connectionId/.triggers': [{ path: '/conn/.triggers', status: 200 }],
    'GET /connect/:namespace/:connectionId/.triggers/:triggerName': [{ path: '/conn/.triggers/never', status: 404 }],
    'POST /connect/:namespace/:connectionId/.triggers/:triggerName': [
      { path: '/conn/.triggers/never', body: {}, status: 400 },
    ],
    'DELETE /connect/:namespace/:connectionId/.triggers/:triggerName': [{ path: '/conn/.triggers/never', status: 400 }],
  };
}

describe('the short form of a connection’s path', () => {
  verifies('path:connect-root', 'serves every route of the long form, and the same', async () => {
    const namespace = await furnished(owner);
    const asked = connectRequests();
    const known = (await routes()).filter(({ path }) => path.startsWith('/connect/'));
    expect(known.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(Object.keys(asked).sort());
    for (const [route, requests] of Object.entries(asked)) {
      const [method = ''] = route.split(' ');
      for (const { path, body, status, ours = owner } of requests) {
        const long = await rawRequest(app, ours, method, `/connect/${namespace}${path}`, body);
        const short = await rawRequest(app, ours, method, `/${namespace}${path}`, body);
        expect([route, path, long.status]).toEqual([route, path, status]);
        expect([route, path, short]).toEqual([route, path, long]);
        const stranger = await rawRequest(app, undefined, method, `/${namespace}${path}`, body);
        expect([route, path, stranger.status]).toEqual([route, path, 401]);
      }
    }
  });

  verifies('path:connect-root', 'creates, changes and deletes', async () => {
    const namespace = await createNamespace(app, owner);
    const ask = async (method: string, path: string, body?: object) => {
      const { status, text } = await rawRequest(app, owner, method, path, body);
      return { status, body: JSON.parse(text) };
    };
    const posted = await ask('POST', `/${namespace}`, { mcpUrl: upstream.url });
    expect(posted.status).toBe(201);
    expect((await ask('PUT', `/${namespace}/mine`, { mcpUrl: upstream.url })).status).toBe(201);
    expect((await ask('PUT', `/${namespace}/mine`, { name: 'Mine' })).status).toBe(200);
    expect((await ask('GET', `/connect/${namespace}/mine`)).body).toMatchObject({ name: 'Mine' });
    for (const id of [posted.body.connectionId, 'mine']) {
      expect(await ask('DELETE', `/${namespace}/${id}`)).toEqual({ status: 200, body: { success: true } });
    }
    expect((await ask('GET', `/connect/${namespace}`)).body.connections).toEqual([]);
  });
});

describe('the first segment of a path', () => {
  verifies('path:reserved-first-segment', 'cannot be claimed if a route uses it', async () => {
    const all = await routes();
    const segments = new Set(all.map(({ path }) => path.split('/')[1]));
    expect([...segments]).toEqual(expect.arrayContaining(['namespaces', 'servers', 'connect', 'accounts', 'health']));
    // Served without a controller.
    for (const segment of ['docs', 'openapi.json', 'openapi.yaml', 'favicon.ico']) segments.add(segment);
    for (const segment of segments) {
      const response = await app.as(owner).put(`/namespaces/${segment}`);
      expect([segment, response.status]).toEqual([segment, 400]);
    }
    expect(() => checkRoutes(all)).not.toThrow();
  });

  verifies('path:reserved-first-segment', 'is reserved for a new route when the service starts', async () => {
    const word = uniqueName('module');
    expect(isNamespaceName(word)).toBe(true);
    reservePath(`/${word}/:namespace`);
    expect((await app.as(owner).put(`/namespaces/${word}`)).status).toBe(400);
    expect(canonicalPath(`/${word}/one`)).toBe(`/${word}/one`);
    reservePath(`/servers/:qualifiedName/${word}`);
    expect((await app.as(owner).put(`/servers/${await createNamespace(app, owner)}%2F${word}`, {})).status).toBe(400);
    expect(canonicalPath(`/servers/acme/${word}`)).toBe(`/servers/acme/${word}`);
  });

  verifies('path:reserved-first-segment', 'is a word in each route, or the service does not start', async () => {
    const [route] = await routes();
    expect(() => checkRoutes([{ ...route, path: '/:name/one' }])).toThrow('must begin with a word');
    expect(() => checkRoutes([{ ...route, path: '/' }])).not.toThrow();
  });
});

describe('letter case in a path', () => {
  verifies('path:no-bypass', 'counts in every part of it', async () => {
    const namespace = await furnished(owner);
    const upper = namespace.toUpperCase();
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
    const wrong: [string, string, object?][] = [
      ...['/Servers', '/SERVERS', '/serverS'].map((head): [string, string] => [
        'GET',
        `${head}/${namespace}%2Fweather`,
      ]),
      ...[`${upper}%2Fweather`, upper].map((name): [string, string] => ['GET', `/servers/${name}`]),
      ...['/Connect', '/CONNECT'].map((head): [string, string] => ['GET', `${head}/${namespace}/conn`]),
      ['GET', `/connect/${upper}/conn`],
      ['GET', `/${upper}/conn`],
      ['GET', `/connect/${namespace}/Conn`],
      ['GET', `/connect/${namespace}/conn/.Tools`],
      ['GET', `/connect/${namespace}/conn/.tools/Echo`],
      ['POST', `/connect/${namespace}/conn/.TOOLS/echo`, {}],
      ['POST', `/connect/${namespace}/conn/MCP`, ping],
      ['POST', `/${namespace}/conn/Mcp`, ping],
      ['PUT', `/Namespaces/${uniqueName('ns')}`],
      ['PUT', `/namespaces/${namespace}/Servers/weather`],
      ['DELETE', `/namespaces/${upper}`],
      ['GET', '/Health'],
      ['GET', '/Namespaces'],
    ];
    for (const [method, path, body] of wrong) {
      const { status } = await rawRequest(app, owner, method, path, body);
      expect([method, path, status]).toEqual([method, path, 404]);
    }
  });
});

/** Spellings of paths of a namespace that mean nothing, by what is odd about them. */
const oddSpellings: Record<string, (namespace: string) => string[]> = {
  'encoded twice': (namespace) => [
    `/servers/${namespace}%252Fweather`,
    `/servers/%2540${namespace}`,
    `/connect/${namespace}/c%256Fnn`,
    `/connect/%2${namespace.charCodeAt(0).toString(16)}${namespace.slice(1)}/conn`,
  ],
  'with dot segments, encoded or not': (namespace) => [
    `/x/../servers/${namespace}`,
    `/./servers/${namespace}`,
    `/servers/./${namespace}`,
    `/servers/x/../${namespace}/weather`,
    `/servers/x%2F..%2F${namespace}%2Fweather`,
    `/servers/${namespace}/./weather`,
    `/servers/${namespace}/%2e/weather`,
    `/connect/x/../${namespace}/conn`,
    `/connect/${namespace}/x/../conn`,
    `/connect/${namespace}/.%2Fconn`,
    `/connect/${namespace}/%2e%2e%2F${namespace}%2Fconn`,
    `/${namespace}/./conn`,
    `/./${namespace}/conn`,
  ],
  'with doubled slashes': (namespace) => [
    `//servers/${namespace}`,
    `/servers//${namespace}`,
    `/servers/${namespace}//weather`,
    `/servers/${namespace}%2F%2Fweather`,
    `//connect/${namespace}/conn`,
    `/connect//${namespace}/conn`,
    `/connect/${namespace}//conn`,
    `//${namespace}/conn`,
  ],
  'with backslashes, or what decoders have taken for slashes': (namespace) => [
    `/servers\\${namespace}`,
    `/servers/${namespace}\\weather`,
    `/servers/${namespace}%5Cweather`,
    `\\servers\\${namespace}`,
    `/servers/${namespace}%c0%afweather`,
    `/servers/${namespace}%ef%bc%8fweather`,
    `/connect\\${namespace}\\conn#`,
  ],
  'with ends of strings, parameters, or more signs': (namespace) => [
    `/servers/${namespace}%00`,
    `/servers/${namespace}%2Fweather%00`,
    `/connect/${namespace}%00/conn`,
    `/${namespace}%00/conn`,
    `/servers/${namespace};x/weather`,
    `/servers/@@${namespace}`,
    `/servers/@%40${namespace}`,
    `/servers/${namespace}%2F%2F`,
    `/connect/@${namespace}/conn`,
    `/@${namespace}/conn`,
    `/servers/${namespace}%2F@weather`,
    `/servers/%2F${namespace}`,
    `/servers/${namespace}%`,
    `/servers/${namespace}%zz`,
    `/servers/${namespace}%ff`,
    `/%ff${namespace}/conn`,
  ],
  'with encoded words of routes': (namespace) => [
    `/%73ervers/${namespace}`,
    `/%63onnect/${namespace}/conn`,
    `/connect/${namespace}/conn/%2etools`,
  ],
};

describe('an odd spelling', () => {
  for (const [what, spell] of Object.entries(oddSpellings)) {
    verifies('path:no-bypass', `${what} does not reach what the plain one means`, async () => {
      const namespace = await furnished(owner);
      const plain = [`/servers/${namespace}%2Fweather`, `/connect/${namespace}/conn`, `/${namespace}/conn`];
      for (const path of plain) expect((await rawRequest(app, owner, 'GET', path)).status).toBe(200);
      for (const path of spell(namespace)) {
        for (const method of ['GET', 'DELETE']) {
          const { status } = await rawRequest(app, owner, method, path);
          expect([method, path, [400, 404].includes(status)]).toEqual([method, path, true]);
        }
      }
      for (const path of plain) expect((await rawRequest(app, owner, 'GET', path)).status).toBe(200);
    });
  }

  verifies('path:no-bypass', 'does not address the namespace of a qualified name', async () => {
    const namespace = await createNamespace(app, owner);
    await createConnection(app, owner, { mcpUrl: upstream.url }, { namespace, connectionId: 'conn' });
    const asked = [
      ['DELETE', `/namespaces/${namespace}%2Fweather`],
      ['DELETE', `/namespaces/${namespace}%2F`],
      ['PUT', `/namespaces/${namespace}%2Fx/servers/weather`],
      ['GET', `/connect/${namespace}%2Fx/conn`],
      ['DELETE', `/connect/${namespace}%2F/conn`],
    ] as const;
    for (const [method, path] of asked) {
      const { status } = await rawRequest(app, owner, method, path);
      expect([method, path, status]).toEqual([method, path, 404]);
    }
    expect((await rawRequest(app, owner, 'GET', `/connect/${namespace}/conn`)).status).toBe(200);
  });

  verifies('path:no-bypass', 'meets the same guard on a route that is served directly, and succeeds', async () => {
    const namespace = await furnished(owner);
    const call = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'echo', arguments: { message: 'Hello' } },
    };
    const calls = [
      { path: 'conn/mcp', body: call },
      { path: 'conn/.tools/echo', body: { message: 'Hello' } },
    ];
    for (const { path, body } of calls) {
      const targets = ['', `http://${uniqueName('host')}`, 'HTTPS://host:1'].flatMap((origin) =>
        [`/connect/${namespace}/${path}`, `/${namespace}/${path}`].flatMap((target) =>
          ['', '/', '//', '#x', '?', '/?', '?#'].map((end) => `${origin}${target}${end}`),
        ),
      );
      for (const target of targets) {
        const allowed = await rawRequest(app, owner, 'POST', target, body);
        expect([target, allowed.status, allowed.text]).toEqual([target, 200, expect.stringContaining('Hello')]);
        const seen = upstream.count('tools/call');
        const refused = await rawRequest(app, other, 'POST', target, body);
        expect([target, refused.status]).toEqual([target, 404]);
        expect((await rawRequest(app, undefined, 'POST', target, body)).status).toBe(401);
        expect(upstream.count('tools/call')).toBe(seen);
      }
    }
  });
});
