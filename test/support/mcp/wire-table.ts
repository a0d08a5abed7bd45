/**
 * The wire as tables. A row has the behavior of a server, the revision of the calls to it, and the response over each
 * interface.
 */
import { expect } from '@jest/globals';
import { testAccount, testApp, type TestAccount, type TestApp } from '../app.js';
import { createConnection, createNamespace } from '../factories.js';
import { externalServer } from '../releases/current-releases.js';
import {
  answer,
  legacy,
  startWire,
  type WireMessage,
  type WireScript,
  type WireUpstream,
} from '../special-upstreams/wire-upstream.js';
import { closing } from '../upstream/upstream-clients.js';
import { eventsOf, mcpAccept, request, send, type Answer } from './calls.js';

export const NEWEST = '2026-07-28';

/** REST, the endpoints of a connection, a namespace and a server, and search mode; `record` reads the connection. */
export type Door = 'REST' | 'connection' | 'namespace' | 'search' | 'run' | 'record';

/** Members of a response that a row expects, each compared strictly. `content` is that of a tool's result, over REST too. */
type Seen = Partial<
  Record<
    | 'status'
    | 'retryAfter'
    | 'text'
    | 'body'
    | 'error'
    | 'message'
    | 'result'
    | 'content'
    | 'structuredContent'
    | 'tools'
    | 'state',
    unknown
  >
>;

type SeenAt = Partial<Record<Door, Seen | Seen[]>>;
type Call = [method: string, params?: Record<string, unknown>];

/** A row: *given, transport, revision, interface → seen*. */
export interface WireRow {
  /** Name of the row in a failure. */
  given: unknown;
  /** Behavior of the server. Consecutive rows with the same script share a connection. */
  server: WireScript;
  /** Revisions of the calls over MCP; the default sends no header. */
  revisions?: string[];
  /** Method and params of the calls; the default calls the tool `run` with the index of the row. */
  call?: Call;
  /** Response over each interface, in the order of the calls; a list is for as many calls. */
  seen: SeenAt | ((revision: string) => SeenAt);
  /** Number of requests that the server has received in the end, by method. */
  requests?: Record<string, unknown>;
}

/** A connection to a server, and its namespace. The first server is `c0`. */
export interface Wired {
  namespace: string;
  /** Path of the namespace's endpoint. */
  all: string;
  upstreams: WireUpstream[];
  paths: string[];
  /** The first of each. */
  upstream: WireUpstream;
  path: string;
  /** Paths of both endpoints, each with the name that the tool `run` has there. */
  doors: [door: string, tool: string][];
}

export const tool = (name: string, more: object = {}) => ({ name, inputSchema: { type: 'object' }, ...more });
/** A legacy server with these tools. The script gets every other request. */
export const serves = (script: WireScript, tools: unknown[] = [tool('run')]): WireScript =>
  legacy((message, res, nth) =>
    message.method === 'tools/list' ? answer(res, message, { tools }) : script(message, res, nth),
  );

/** Index of the row whose call this is. */
export const rowOf = ({ params }: WireMessage) => (params?.arguments as { row: number } | undefined)?.row ?? -1;

export const ran = [{ type: 'text', text: 'ran' }];

export const hello = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'spec', version: '1' } };

/** Envelope of a request of 2026-07-28. */
export const envelope = (capabilities: object = {}) => ({
  'io.modelcontextprotocol/protocolVersion': NEWEST,
  'io.modelcontextprotocol/clientCapabilities': capabilities,
  'io.modelcontextprotocol/clientInfo': { name: 'spec', version: '1' },
});

/** The app of a test file, its owner, and the functions of {@link wireOn}. */
export function wireTests(...settings: Parameters<typeof testApp>) {
  const app = testApp(...settings);
  const owner = testAccount(app);
  return { app, owner, ...wireOn(app, owner) };
}

/** Functions that connect servers to a running app and call them. */
export function wireOn(app: TestApp, owner: TestAccount) {
  /** Connects servers, which end with the test, in one new namespace. */
  async function connected(...scripts: WireScript[]): Promise<Wired> {
    const namespace = await createNamespace(app, owner);
    const upstreams: WireUpstream[] = [];
    const paths: string[] = [];
    for (const [i, script] of scripts.entries()) {
      const upstream = closing(await startWire(script));
      upstreams.push(upstream);
      const place = { namespace, connectionId: `c${i}` };
      paths.push((await createConnection(app, owner, { mcpUrl: upstream.url }, place)).path);
    }
    const [[upstream], [path = '']] = [upstreams as [WireUpstream], paths];
    const all = `/connect/${namespace}/.mcp`;
    return {
      namespace,
      all,
      upstreams,
      paths,
      upstream,
      path,
      doors: [
        [`${path}/mcp`, 'run'],
        [all, 'c0__run'],
      ],
    };
  }

  /** Posts a message to an endpoint, as an MCP client does; the body is the reply, from a stream too. */
  async function ask(door: string, message: string | object, headers: Record<string, string> = {}): Promise<Answer> {
    const answer = await send(app, owner, door, message, { headers: { ...mcpAccept, ...headers } });
    const isStream = answer.headers.get('content-type')?.startsWith('text/event-stream') === true;
    const last = isStream ? eventsOf(answer.text).at(-1) : undefined;
    return last === undefined ? answer : { ...answer, body: JSON.parse(last) as unknown };
  }

  /** Sends a request of 2026-07-28. */
  function newest(door: string, method: string, params: Record<string, unknown> = {}, capabilities: object = {}) {
    const name = params.name ?? params.uri ?? params.taskId;
    const own = { 'mcp-protocol-version': NEWEST, 'mcp-method': method, ...(name ? { 'mcp-name': String(name) } : {}) };
    return ask(door, request(1, method, { ...params, _meta: envelope(capabilities) }), own);
  }

  /** Calls over an interface. */
  async function at(door: Door, { path, all, upstream }: Wired, [method, params]: Call, revision: string) {
    const get = (from: string) => send(app, owner, from, undefined, { method: 'GET' });
    if (door === 'record') return get(path);
    if (door === 'REST')
      return method === 'tools/list'
        ? get(`${path}/.tools`)
        : send(app, owner, `${path}/.tools/run`, params?.arguments as object);
    const inAll = params?.name === undefined ? params : { ...params, name: `c0__${String(params.name)}` };
    const endpoints: Record<typeof door, () => Promise<[string, Call[1]]> | [string, Call[1]]> = {
      connection: () => [`${path}/mcp`, params],
      namespace: () => [all, inAll],
      search: () => [`${all}?mode=search`, { name: 'call_tool', arguments: inAll }],
      run: async () => [`/run/${(await externalServer(app, owner, upstream.url)).slug}`, params],
    };
    const [endpoint, sent] = await endpoints[door]();
    if (revision === NEWEST) return newest(endpoint, method, sent);
    return ask(endpoint, request(1, method, sent), revision ? { 'mcp-protocol-version': revision } : {});
  }

  return {
    connected,
    ask,
    newest,
    /** Headers of a new session at an endpoint. */
    async sessionAt(door: string, capabilities: object = {}): Promise<{ 'mcp-session-id': string }> {
      const { headers } = await ask(door, request(0, 'initialize', { ...hello, capabilities }));
      return { 'mcp-session-id': headers.get('mcp-session-id') ?? '' };
    },
    /** Lists the tools of a connection over REST. */
    restTools: async (path: string) =>
      (await send(app, owner, `${path}/.tools`, undefined, { method: 'GET' })).body.tools,
    /** Calls the tool `run` of a connection over REST. */
    run: (path: string) => send(app, owner, `${path}/.tools/run`, {}),
    /** Checks the rows of a table one after the other. */
    async rows(table: WireRow[]): Promise<void> {
      let wired: Wired | undefined;
      for (const [i, { given, server, revisions = [''], ...row }] of table.entries()) {
        if (!wired || server !== table[i - 1]?.server) wired = await connected(server);
        const { call = ['tools/call', { name: 'run', arguments: { row: i } }] } = row;
        for (const revision of revisions) {
          const seenAt = typeof row.seen === 'function' ? row.seen(revision) : row.seen;
          for (const [door, expected] of Object.entries(seenAt) as [Door, Seen | Seen[]][]) {
            for (const seen of [expected].flat()) {
              const view = viewOf(await at(door, wired, call, revision));
              const shown = Object.fromEntries(Object.keys(seen).map((key) => [key, view[key as keyof Seen]]));
              expect([given, revision, door, shown]).toEqual([given, revision, door, seen]);
            }
          }
        }
        const requests = Object.keys(row.requests ?? {}).map((method) => [method, wired?.upstream.count(method)]);
        expect([given, Object.fromEntries(requests)]).toEqual([given, row.requests ?? {}]);
      }
    },
  };
}

function viewOf({ status, headers, text, body }: Answer): Required<Seen> {
  const { error, message, result, content = result?.content, tools = result?.tools } = body ?? {};
  const retryAfter = headers.get('retry-after');
  return {
    status,
    retryAfter,
    text,
    body,
    error,
    message,
    result,
    content,
    structuredContent: result?.structuredContent,
    tools,
    state: body?.status,
  };
}
