import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { beforeAll, describe, expect } from '@jest/globals';
import supertest from 'supertest';
import { testApp, uniqueName, type TestAccount } from '../../support/app.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
let upstream: Upstream;
let owner: TestAccount;
let namespace: string;
let connection: string;
let server: string;

beforeAll(async () => {
  upstream = await startUpstream();
  owner = await app.account();
  namespace = await createNamespace(app, owner);
  server = `/servers/${encodeURIComponent(await createServer(app, owner, { namespace }))}`;
  const metadata = { userId: 'u-1' };
  connection = (await createConnection(app, owner, { mcpUrl: upstream.url, metadata }, { namespace })).path;
});

/** Members of the `…Params` interface of a list in the types of a published client, those of its page included. */
function parametersOf(client: string, file: string, name: string): string[] {
  const root = path.dirname(createRequire(import.meta.url).resolve(client));
  const text = [file, 'core/pagination.d.ts'].map((one) => readFileSync(path.join(root, one), 'utf8')).join('\n');
  const [, page, body = ''] =
    new RegExp(`export interface ${name}(?: extends (\\w+))? \\{([\\s\\S]*?)\\n\\}`).exec(text) ?? [];
  const own = [...body.matchAll(/^ {4}'?([\w.]+)'?\??:/gm)].map(([, member]) => member);
  return page === undefined ? own : [...own, ...parametersOf(client, 'core/pagination.d.ts', page)];
}

describe('a query parameter that a route does not declare', () => {
  verifies('query:unknown', 'returns 400 with the nearest one', async () => {
    const cases: [string, string][] = [
      [`/connect/${namespace}?metdata.userId=u-1`, 'did you mean "metadata.userId"?'],
      [`/connect/${namespace}?userId=u-1`, 'did you mean "metadata.userId"?'],
      [`/connect/${namespace}?status=error`, 'did you mean "state"?'],
      [
        `/connect/${namespace}?owner=x`,
        'did you mean "metadata.owner"? This route takes limit, cursor, name, mcpUrl, server, state, metadata.{key}.',
      ],
      [`/connect/${namespace}?limt=5`, 'did you mean "limit"?'],
      [
        `${server}/logs?q=x`,
        'this route takes from, to, before, search, outcome, tool, method, minDurationMs, caller, limit.',
      ],
      [`${server}/logs?serach=x`, 'did you mean "search"?'],
      [`${server}/releases?pagesize=5`, 'did you mean "pageSize"?'],
      [`${server}?fields=x`, 'this route takes none.'],
      [`${connection}?x=1`, 'this route takes none.'],
      [`/servers?page_size=5`, 'did you mean "pageSize"?'],
      [`/namespaces?onwerId=x`, 'did you mean "ownerId"?'],
      [`/accounts/me?x`, 'this route takes none.'],
    ];
    for (const [target, advice] of cases) {
      const { status, body } = await app.as(owner).get(target);
      const text = String(body.message ?? body.error);
      expect([target, status, text]).toEqual([target, 400, expect.stringMatching(/^There is no query parameter "/)]);
      expect(text).toContain(advice);
    }
    const { body } = await app.as(owner).get('/servers?pageSize=x&page=0');
    expect(body).toEqual({
      error: 'page must be a whole number of 1 or more; pageSize must be a whole number from 1 to 100',
    });
    const call = await app.as(owner).post(`${connection}/.tools/echo?dry=1`, { message: 'hi' });
    expect([call.status, call.body.error]).toEqual([400, 'validation_error']);
    expect(upstream.count('tools/call')).toBe(0);
  });

  verifies(
    'query:unknown',
    'is not reported to a caller without a key, and is accepted on MCP endpoints and health',
    async () => {
      expect((await app.as().get(`/connect/${namespace}?x=1`)).status).toBe(401);
      const ping = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
      const mcp = await supertest(app.url)
        .post(`${connection}/mcp?x=1`)
        .set('authorization', `Bearer ${owner.key}`)
        .set('accept', 'application/json, text/event-stream')
        .send(ping);
      expect([mcp.status, mcp.text]).toEqual([200, expect.stringContaining('echo')]);
      expect((await app.as().get('/health?x=1')).status).toBe(200);
    },
  );

  verifies(
    ['query:unknown', 'connection:list:unknown-query'],
    'never answers all connections in place of a metadata filter',
    async () => {
      const spellings = [
        'metadata[i]=5',
        'metadata%5Bi%5D=5',
        'metadata=%7B%22i%22%3A5%7D',
        'Metadata.i=5',
        'METADATA[i]=5',
      ];
      for (const spelling of spellings) {
        const { status, body } = await app.as(owner).get(`/connect/${namespace}?${spelling}`);
        expect([spelling, status, body.error]).toEqual([spelling, 400, 'validation_error']);
        expect([spelling, body.message]).toEqual([
          spelling,
          expect.stringMatching(/did you mean "metadata\.(i|\{key\})"/),
        ]);
      }
      const right = await app.as(owner).get(`/connect/${namespace}?metadata.userId=u-1`);
      expect(right.body.connections).toHaveLength(1);
    },
  );

  verifies('query:published-clients', 'is none of those in the types of the published clients', async () => {
    const lists: [string, string, string][] = [
      [`/connect/${namespace}`, 'resources/connections/connections.d.ts', 'ConnectionListParams'],
      ['/servers', 'resources/servers/servers.d.ts', 'ServerListParams'],
      ['/namespaces', 'resources/namespaces/namespaces.d.ts', 'NamespaceListParams'],
      [`${server}/logs`, 'resources/servers/logs.d.ts', 'LogListParams'],
      [`${server}/releases`, 'resources/servers/releases.d.ts', 'ReleaseListParams'],
    ];
    const skills: Record<string, string> = {
      '@smithery/api': 'resources/skills.d.ts',
      '@smithery/api-0.50': 'resources/skills/skills.d.ts',
    };
    let checked = 0;
    for (const [client, file] of Object.entries(skills)) {
      for (const [target, types, name] of [...lists, ['/skills', file, 'SkillListParams']]) {
        for (const parameter of parametersOf(client, types, name)) {
          const { body } = await app.as(owner).get(`${target}?${parameter}=1`);
          const text = JSON.stringify(body);
          expect([client, target, parameter, text]).toEqual([
            client,
            target,
            parameter,
            expect.not.stringContaining('no query parameter'),
          ]);
          checked += 1;
        }
      }
    }
    expect(checked).toBeGreaterThan(70);
  });
});

describe('a refused key', () => {
  verifies('auth:explained', 'is explained in the body and in WWW-Authenticate', async () => {
    const reasons: [string | undefined, RegExp][] = [
      [undefined, /^The API key is missing: send it as /],
      ['slipway_of_somebody', /^The Authorization header must be /],
      [`Bearer ${uniqueName()}`, /^The API key is not valid: /],
    ];
    for (const [header, reason] of reasons) {
      for (const target of ['/namespaces', server, connection, '/skills', `${connection}/mcp`]) {
        const request = target.endsWith('/mcp') ? supertest(app.url).post(target) : supertest(app.url).get(target);
        const { status, body, headers } = await (header === undefined ? request : request.set('authorization', header));
        expect([target, status]).toEqual([target, 401]);
        expect(headers['slipway-hint'] ?? body.message ?? body.error.message).toMatch(reason);
        const [, description = ''] = /error_description="([^"]*)"/.exec(String(headers['www-authenticate'])) ?? [];
        expect(description).toMatch(reason);
      }
    }
    expect((await app.as().get('/namespaces')).body.error).toBe('Unauthorized');
  });
});
