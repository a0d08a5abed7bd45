import { beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Sandbox } from '../../../src/hosting/sandbox/sandbox.js';
import type { StoredSource } from '../../../src/modules/connections/core/connection.entity.js';
import type { InvalidSourceError, SourceDiagnostic } from '../../../src/modules/connections/core/connections.errors.js';
import { SourceCompiler } from '../../../src/modules/connections/source/source-compiler.service.js';
import { ConnectionCallsService } from '../../../src/modules/logs/connection-calls.service.js';
import { uuidV7 } from '../../../src/platform/database/uuid-v7.js';
import { testAccount, testApp, uniqueName } from '../../support/app.js';
import { createConnection, createNamespace } from '../../support/factories.js';
import { until } from '../../support/until.js';
import { longVerifies, verifies } from '../../support/verifies.js';

const SERVER = `import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { ServerModule } from '@smithery/sdk';

interface Digest { text: string }
console.log('loaded');
const factory = () => {
  const server = new McpServer({ name: 'digests', version: '1.0.0' });
  server.registerTool('digest', { description: 'SHA-1', inputSchema: { text: z.string() } }, async ({ text }: Digest) => {
    console.log('digesting', text);
    if (text === 'boom') queueMicrotask(() => { throw new RangeError('too loud'); });
    return { content: [{ type: 'text', text: createHash('sha1').update(text).digest('hex') }] };
  });
  return server.server;
};
export default factory satisfies (context: object) => unknown;
`;

/** Answers as the compiler does, with what a process sees there. */
const LOOK_AROUND = `const { existsSync, readdirSync } = require('node:fs');
const seen = {
  isRoot: process.getuid() === 0,
  network: Object.keys(require('node:os').networkInterfaces()),
  isDataThere: existsSync(process.argv[1]),
  isSecretThere: existsSync('/etc/shadow') || existsSync('/root'),
  files: readdirSync('.').sort(),
  env: Object.keys(process.env).filter((name) => !['PATH', 'PWD', 'OLDPWD', '_', 'SHLVL'].includes(name)),
};
process.stdout.write(JSON.stringify({ diagnostics: [{ path: 'a', line: 1, column: 1, message: JSON.stringify(seen) }] }));`;

const app = testApp();
const owner = testAccount(app);
let namespace: string;

beforeAll(async () => {
  namespace = await createNamespace(app, owner);
});

function source(contents: string, path = 'server.ts') {
  return { kind: 'module', entrypoint: path, sourceFiles: [{ path, contents }] };
}

interface LogBody {
  invocations: {
    tool: string | null;
    rpcMethod: string | null;
    logs: { level: string; message: string }[];
    exceptions: object[];
  }[];
}

async function logs(path: string, query = ''): Promise<LogBody['invocations']> {
  const { body } = await app.as(owner).get(`${path}/logs${query}`);
  return (body as LogBody).invocations;
}

describe('a connection with a module of its own', () => {
  verifies('connection:create:source-runs', 'runs it: the module is compiled, loaded and called', async () => {
    const { path, body } = await createConnection(app, owner, { source: source(SERVER) }, { namespace });
    expect(body).toMatchObject({ mcpUrl: null, status: { state: 'connected' }, serverInfo: { name: 'digests' } });
    const called = await app.as(owner).post(`${path}/.tools/digest`, { text: 'abc' });
    expect(called.body).toMatchObject({ content: [{ text: 'a9993e364706816aba3e25717850c26c9cd0d89d' }] });
    const client = new Client({ name: 'test', version: '1' });
    const headers = { authorization: `Bearer ${owner.key}` };
    await client.connect(
      new StreamableHTTPClientTransport(new URL(`${app.url}${path}/mcp`), { requestInit: { headers } }),
    );
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['digest']);
    await client.close();
  });

  verifies(
    'connection:source:logs',
    'has what its module prints in its log, with the call that printed it',
    async () => {
      const { path, body } = await createConnection(app, owner, { source: source(SERVER) }, { namespace });
      const [{ id }] = await app.database.query('SELECT id FROM connections WHERE connection_id = $1', [
        (body as { connectionId: string }).connectionId,
      ]);
      // No database can store such a name, and no line after it may wait for that.
      const exceptions = [{ at: Date.now(), name: 'Too\0Loud', message: 'thrown' }];
      app.get(ConnectionCallsService).record({ id: uuidV7(), connectionId: String(id), lines: [], exceptions });
      await app.as(owner).post(`${path}/.tools/digest`, { text: 'a rare word' });
      const call = await until(
        async () => (await logs(path, '?search=RARE')).find(({ logs: lines }) => lines.length > 0),
        'the line stands there',
      );
      expect(call).toMatchObject({ tool: 'digest', logs: [{ level: 'log', message: 'digesting a rare word' }] });
      expect((await logs(path)).some(({ logs: lines }) => lines.some(({ message }) => message === 'loaded'))).toBe(
        true,
      );
    },
  );

  verifies(
    'connection:create:source-invalid',
    'is rejected when it does not compile, with line and column of each problem',
    async () => {
      for (const [contents, line, column, message] of [
        ['export default () => {\n  const a: = 1;\n};', 2, 12, /Unexpected/],
        ["import { x } from './beside.js';\nexport default () => x;", 1, 19, /one file/],
        ["\nimport pg from 'pg';\nexport default () => pg;", 2, 16, /"pg", but only Node built-ins, zod and/],
        ["import text from '/etc/hostname';\nexport default () => text;", 1, 18, /bundle the import/],
        ['export const a = 1;', 1, 1, /no default export/],
      ] as const) {
        const path = `/connect/${namespace}/${uniqueName('conn')}`;
        const { status, body } = await app.as(owner).put(path, { source: source(contents) });
        expect({ status, body }).toEqual({
          status: 400,
          body: {
            error: {
              code: 'invalid_module',
              message: 'The module server.ts cannot be compiled: one fault.',
              diagnostics: [{ path: 'server.ts', line, column, message: expect.stringMatching(message) }],
            },
          },
        });
        expect((await app.as(owner).get(path)).status).toBe(404);
      }
    },
  );

  verifies(
    'connection:source:sandbox',
    'imports no file of this machine, by any name and any form of import',
    async () => {
      const names = [
        ...['/etc/hostname', '../etc/hostname', 'file:///etc/hostname', 'acorn', './zod/index.js'],
        ...['zod/../../package.json', '@modelcontextprotocol/sdk/../../acorn/dist/acorn.mjs'],
      ];
      const lines = names.map((name, at) => `import * as i${at} from '${name}';`).join('\n');
      const contents = `import * as z from 'zod';\n${lines}\nexport default () => [z, ${names.map((_, at) => `i${at}`).join()}];`;
      for (const entrypoint of ['server.ts', '/node_modules/index.ts']) {
        const stored = { entrypoint, sourceFiles: [{ path: entrypoint, contents }] };
        const refusal = await app
          .get(SourceCompiler)
          .check(stored as StoredSource, namespace)
          .catch((error) => error);
        const { diagnostics } = (
          (refusal as InvalidSourceError).ownBody as { error: { diagnostics: SourceDiagnostic[] } }
        ).error;
        expect(diagnostics.map(({ line }) => line)).toEqual(names.map((_, at) => at + 2));
        for (const { message } of diagnostics.slice(0, 5)) expect(message).toMatch(/^It imports /);
      }
    },
  );

  verifies(
    'connection:source:sandbox',
    'is compiled in the sandbox: no network, no data, no files of others',
    async () => {
      const sandbox = app.get(Sandbox);
      const { measures } = await sandbox.describeIsolation();
      expect(measures).toMatchObject({ 'own-user': 'active', 'own-network': 'active', 'own-files': 'active' });
      const command = sandbox.command.bind(sandbox);
      jest.spyOn(sandbox, 'command').mockImplementationOnce((program, _args, confinement) => {
        return command(program, ['-e', LOOK_AROUND, app.env.dataDir], confinement);
      });
      const { body } = await app
        .as(owner)
        .put(`/connect/${namespace}/${uniqueName('conn')}`, { source: source('look') });
      const [{ message }] = (body as { error: { diagnostics: { message: string }[] } }).error.diagnostics;
      expect(JSON.parse(message)).toEqual({
        isRoot: false,
        network: [],
        isDataThere: false,
        isSecretThere: false,
        files: ['dist', 'node_modules', 'package.json'],
        env: [],
      });
    },
  );

  longVerifies(
    'connection:create:source-invalid',
    'is refused when it throws while it is loaded, and leaves nothing behind',
    async () => {
      const path = `/connect/${namespace}/${uniqueName('conn')}`;
      const contents = "throw new Error('out of ink');\nexport default () => 1;";
      const { status, body } = await app.as(owner).put(path, { source: source(contents) });
      expect({ status, body }).toMatchObject({
        status: 400,
        body: {
          error: {
            code: 'invalid_module',
            diagnostics: [{ path: 'server.ts', message: expect.stringMatching(/out of ink/) }],
          },
        },
      });
      expect((await app.as(owner).get(path)).status).toBe(404);
    },
  );

  it('ends with its connection', async () => {
    const { path } = await createConnection(app, owner, { source: source(SERVER) }, { namespace });
    expect((await app.as(owner).delete(path)).status).toBe(200);
    expect((await app.as(owner).post(`${path}/.tools/digest`, { text: 'abc' })).status).toBe(404);
  });
});
