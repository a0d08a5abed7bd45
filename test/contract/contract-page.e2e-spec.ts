import { beforeAll, describe, expect } from '@jest/globals';
import { isResumable, releaseStatuses } from '../../src/modules/releases/release-state.js';
import type { ReleaseType } from '../../src/modules/servers/server.types.js';
import { testAccount, testApp, uniqueName } from '../support/app.js';
import { pathOf, serverIdOf } from '../support/database/server-rows.js';
import { ApiDocument, isObject } from '../support/documentation/api-document.js';
import { readPage } from '../support/documentation/doc-pages.js';
import { createNamespace, createServer } from '../support/factories.js';
import { record } from '../support/logs/invocations.js';
import { bundleOf } from '../support/releases/bundles.js';
import { images, uploadIcon } from '../support/releases/icons.js';
import { published, publishExternal, releaseIn } from '../support/releases/releases.js';
import { createSkill } from '../support/releases/skills.js';
import { startScripted, type ScriptedUpstream } from '../support/special-upstreams/scripted-upstream.js';
import { until } from '../support/until.js';
import { verifies } from '../support/verifies.js';

/** Members of answers that the specification gives a type without null, by operation. `[]` stands for each element. */
const specified = {
  'GET /servers/{qualifiedName}': [
    ...['qualifiedName', 'displayName', 'description', 'iconUrl', 'remote', 'deploymentUrl', 'connections', 'security'],
    ...['connections[].type', 'connections[].bundleUrl', 'connections[].configSchema', 'security.scanPassed'],
    ...['tools', 'tools[].name', 'tools[].description', 'tools[].inputSchema', 'tools[].inputSchema.type'],
    ...['tools[].inputSchema.properties', 'tools[].outputSchema'],
    ...['resources', 'resources[].name', 'resources[].uri', 'resources[].description', 'resources[].mimeType'],
    ...['prompts', 'prompts[].name', 'prompts[].description', 'prompts[].arguments'],
    ...['prompts[].arguments[].name', 'prompts[].arguments[].description', 'prompts[].arguments[].required'],
  ],
  'POST /connect/{namespace}': [
    ...['connectionId', 'name', 'metadata', 'createdAt', 'status', 'status.state', 'serverInfo', 'serverInfo.name'],
    ...[
      'serverInfo.version',
      'serverInfo.title',
      'serverInfo.icons',
      'serverInfo.websiteUrl',
      'serverInfo.description',
    ],
  ],
  'GET /connect/{namespace}': ['connections', 'nextCursor'],
  'DELETE /connect/{namespace}/{connectionId}': ['success'],
  'GET /connect/{namespace}/{connectionId}/.tools/{toolPath}': [
    ...['name', 'inputSchema', 'inputSchema.type', 'inputSchema.properties', 'inputSchema.required', 'title', 'icons'],
    ...['description', 'outputSchema', 'annotations', 'execution', '_meta'],
  ],
  'GET /servers/{qualifiedName}/releases': [
    ...[
      'id',
      'status',
      'type',
      'createdAt',
      'updatedAt',
      'commit',
      'commitMessage',
      'branch',
      'upstreamUrl',
      'mcpUrl',
    ].map((member) => `releases[].${member}`),
    ...['currentPage', 'pageSize', 'totalPages', 'totalCount'].map((member) => `pagination.${member}`),
  ],
  'GET /servers/{qualifiedName}/logs': [
    ...['invocations', 'total', 'invocations[].id', 'invocations[].timestamp', 'invocations[].request.method'],
    ...['invocations[].request.url', 'invocations[].response.status', 'invocations[].response.outcome'],
    ...['invocations[].duration.cpuMs', 'invocations[].duration.wallMs', 'invocations[].logs[].timestamp'],
    ...['invocations[].logs[].level', 'invocations[].logs[].message', 'invocations[].exceptions'],
  ],
  'PUT /namespaces/{namespace}/servers/{server}': ['namespace', 'server', 'displayName', 'description', 'createdAt'],
  'DELETE /servers/{qualifiedName}': ['success', 'namespace', 'server'],
  'DELETE /namespaces/{name}': ['success', 'name'],
  'DELETE /skills/{namespace}/{slug}': ['success', 'qualifiedName'],
};

const SPARSE = 'its MCP server says no more than it must';

type Operation = keyof typeof specified;

const app = testApp();
const owner = testAccount(app);
let sparse: ScriptedUpstream;
let page: string;

beforeAll(async () => {
  page = await readPage('docs/contributing/contract.md');
  // Says only what MCP demands.
  sparse = await startScripted(
    ({ method }) => {
      if (method === 'tools/list') return '{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}';
      if (method === 'resources/list') return '{"resources":[{"name":"a","uri":"a://a"}]}';
      if (method === 'prompts/list') return '{"prompts":[{"name":"bare"},{"name":"more","arguments":[{"name":"x"}]}]}';
      return '{}';
    },
    { capabilities: { tools: {}, resources: {}, prompts: {} } },
  );
});

/** The rows of the table below a heading of the page, without its head. */
function rowsBelow(heading: string): string[][] {
  const [, section = ''] = page.split(`## ${heading}\n`);
  const lines = (section.split('\n## ')[0] ?? '').split('\n').filter((line) => line.startsWith('|'));
  return lines.slice(2).map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

/** What stands at a path in each place where its parent does. */
function* valuesAt(value: unknown, [member, ...rest]: string[]): Generator<unknown> {
  if (member === undefined) yield value;
  else if (member === '[]') for (const item of Array.isArray(value) ? value : []) yield* valuesAt(item, rest);
  else if (isObject(value)) yield* valuesAt(value[member], rest);
}

/** The specified members that an answer does not have: `path: null` or `path: absent`. */
function missingIn(operation: Operation, answer: unknown): string[] {
  return specified[operation].flatMap((path) => {
    const values = [...valuesAt(answer, path.replaceAll('[]', '.[]').split('.'))];
    const faults = [values.includes(null) && 'null', values.includes(undefined) && 'absent'];
    return faults.filter((problem) => problem !== false).map((problem) => `${path}: ${problem}`);
  });
}

async function read(path: string): Promise<unknown> {
  const { status, body } = await app.as(owner).get(path);
  expect([path, status]).toEqual([path, 200]);
  return body as unknown;
}

async function remove(path: string): Promise<unknown> {
  const { status, body } = await app.as(owner).delete(path);
  expect([path, status]).toEqual([path, 200]);
  return body as unknown;
}

/** Asks in every situation that the page names. */
async function answers(): Promise<[operation: Operation, when: string, answer: unknown][]> {
  const namespace = await createNamespace(app, owner);
  const server = await createServer(app, owner, { namespace, description: 'Forecasts.' });
  const bare = await read(pathOf(server));
  await uploadIcon(app, owner, server, images['image/png']);
  await publishExternal(app, owner, server, { upstreamUrl: sparse.url });
  const external = [await read(pathOf(server)), await read(`${pathOf(server)}/releases`)];

  const packed = await createServer(app, owner, { namespace });
  await uploadIcon(app, owner, packed, images['image/png']);
  const source = { commit: '8f2d1c0', commitMessage: 'Better forecasts', branch: 'main' };
  const bundle = await bundleOf();
  const id = await published(app, owner, packed, { type: 'stdio', runtime: 'node', source }, { bundle });
  await releaseIn(app, owner, packed, id, 'SUCCESS');

  const post = async (body: object) => (await app.as(owner).post(`/connect/${namespace}`, body)).body as unknown;
  const connected = (await post({ mcpUrl: sparse.url })) as { connectionId: string };
  const connectionPath = `/connect/${namespace}/${connected.connectionId}`;
  const tool = await read(`${connectionPath}/.tools/echo`);

  record(app, await serverIdOf(app, server), { messages: ['called'] });
  const log = await until(async () => {
    const body = (await read(`${pathOf(server)}/logs`)) as { total: number };
    return body.total > 0 ? body : null;
  }, 'the call is in the log');
  const skill = await createSkill(app, owner, { namespace });
  const older = await app.as(owner).put(`/namespaces/${namespace}/servers/${uniqueName('server')}`, {});
  return [
    ['GET /servers/{qualifiedName}', 'no release and no icon', bare],
    ['GET /servers/{qualifiedName}', SPARSE, external[0]],
    ['GET /servers/{qualifiedName}', 'a bundle that is not run', await read(pathOf(packed))],
    ['GET /servers/{qualifiedName}/releases', 'an external release without source', external[1]],
    ['GET /servers/{qualifiedName}/releases', 'a bundle that is not run', await read(`${pathOf(packed)}/releases`)],
    ['POST /connect/{namespace}', SPARSE, connected],
    ['POST /connect/{namespace}', 'not reached yet', await post({ transport: 'uplink' })],
    ['GET /connect/{namespace}', 'the last page', await read(`/connect/${namespace}`)],
    ['GET /connect/{namespace}', '', await read(`/connect/${namespace}?limit=1`)],
    ['GET /connect/{namespace}/{connectionId}/.tools/{toolPath}', SPARSE, tool],
    ['GET /servers/{qualifiedName}/logs', '', log],
    ['PUT /namespaces/{namespace}/servers/{server}', '', older.body],
    ['DELETE /connect/{namespace}/{connectionId}', '', await remove(connectionPath)],
    ['DELETE /servers/{qualifiedName}', '', await remove(pathOf(server))],
    ['DELETE /skills/{namespace}/{slug}', '', await remove(skill.path)],
    ['DELETE /namespaces/{name}', '', await remove(`/namespaces/${await createNamespace(app, owner)}`)],
  ];
}

describe('docs/contributing/contract.md', () => {
  verifies(
    'contract:page',
    'names every specified member that a response has as null or not at all, and no other',
    async () => {
      const missing = (await answers()).flatMap(([operation, when, answer]) =>
        missingIn(operation, answer).map((one) => `${operation} | ${when} | ${one}`),
      );
      const rows = rowsBelow('Members that are null or absent');
      const told = rows.flatMap(([operation = '', members = '', answered = '', when]) =>
        members
          .split(', ')
          .map((member) => [operation, when, `${member}: ${answered}`].join(' | ').replaceAll('`', '')),
      );
      expect(told.sort()).toEqual(missing.sort());
      expect(rows.filter(([, , , , why = '']) => why.length < 20)).toEqual([]);
    },
  );

  verifies('contract:page', 'answers what the specification does not show, as the API document does', async () => {
    const document = await ApiDocument.read();
    const { schemas } = document.content.components;
    const operation = (name: string) => document.operations.find((documented) => documented.name === name)?.operation;
    const queryOf = (name: string) =>
      (operation(name)?.parameters ?? [])
        .filter((parameter) => parameter.in === 'query')
        .map((parameter) => (parameter.name === 'metadata' ? 'metadata.{key}' : parameter.name));
    const membersOf = (...names: string[]) => names.flatMap((name) => Object.keys(schemas[name]?.properties ?? {}));
    const list = 'GET /connect/{namespace}';
    const states = operation(list)?.parameters?.find(({ name }) => name === 'state')?.schema?.enum as string[];
    const types: Record<ReleaseType, true> = { external_shttp: true, hosted_shttp: true, stdio: true };
    const source = schemas.SetConnectionDto?.properties?.source;
    const words: Record<string, string[]> = {
      'Values of `status.state`': states,
      'Values of `status` of a release': schemas.ReleaseDto?.properties?.status?.enum as string[],
      'Values of `type` of a release': Object.keys(types),
      'Statuses that can be resumed': releaseStatuses.filter(isResumable),
      'Entries of `connections` of a server': [
        ...membersOf('HttpServerConnectionDto', 'StdioServerConnectionDto'),
        ...['http', 'stdio'],
      ],
      'Required members of a tool': schemas.ToolDto?.required ?? [],
      'Name of the schema expression': membersOf('ToolOutputSchemaDto').filter((name) => name.endsWith('Schema')),
      'Members of a namespace': membersOf('NamespaceDto'),
      'Members of `source`': [
        ...Object.keys(source?.properties ?? {}),
        ...Object.keys(source?.properties?.sourceFiles?.items?.properties ?? {}),
      ],
      'Required members of bodies': ['CreateServerDto', 'SetConnectionDto'].flatMap(
        (name) => schemas[name]?.required ?? [],
      ),
      'Query of List connections': queryOf(list),
      'Query of List releases': queryOf('GET /servers/{qualifiedName}/releases'),
      'Query of List runtime logs': queryOf('GET /servers/{qualifiedName}/logs'),
      'Listing of a category': membersOf('ToolListDto'),
      'Replacement of the deprecated PUT': ['PUT /servers/{qualifiedName}'].filter((name) => operation(name)),
    };
    const rows = rowsBelow('What the specification does not show');
    for (const [, subject = '', answer = ''] of rows) {
      const listedWords = [...answer.matchAll(/`([^`]+)`/g)].map(([, word]) => word);
      if (subject in words)
        expect([subject, listedWords.sort()]).toEqual([subject, [...new Set(words[subject])].sort()]);
      else expect([subject, answer]).toEqual([subject, expect.stringMatching(/\]\(.+\.md/)]);
    }
    expect(rows.map(([, subject]) => subject)).toEqual(expect.arrayContaining(Object.keys(words)));
  });
});
