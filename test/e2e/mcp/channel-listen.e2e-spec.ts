import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ServerResponse } from 'node:http';
import type { Channel, ListenFilter, Listening } from '../../../src/mcp/protocol/channel.js';
import { type HandleOwner, UpstreamHandle } from '../../../src/mcp/client/upstream-handle.js';
import { AddressPolicy, parseEgressAllow } from '../../../src/platform/egress/address-policy.js';
import { Egress } from '../../../src/platform/egress/egress.js';
import { times } from '../../support/mcp/calls.js';
import { channelTo as channelIn } from '../../support/mcp/channels.js';
import { startSdkV2 } from '../../support/special-upstreams/sdk-upstream.js';
import { startNotificationServer } from '../../support/special-upstreams/notification-server.js';
import { until } from '../../support/until.js';
import { closing } from '../../support/upstream/upstream-clients.js';
import { verifies } from '../../support/verifies.js';
import {
  answer,
  event,
  legacy,
  modern,
  startWire,
  stream,
  type WireMessage,
  type WireUpstream,
} from '../../support/special-upstreams/wire-upstream.js';

let egress: Egress;

beforeAll(() => {
  egress = new Egress(new AddressPolicy(parseEgressAllow('loopback')));
});
afterAll(() => egress.close());

const owner: HandleOwner = { failed: (_method, error) => error };

function channelTo(url: string): Channel {
  return closing(new UpstreamHandle(channelIn(egress, url), owner));
}

interface Heard extends Listening {
  heard: string[];
  ends: (Error | null)[];
}

async function listen(channel: Channel, filter: ListenFilter): Promise<Heard> {
  const heard: string[] = [];
  const ends: (Error | null)[] = [];
  const listener = {
    onNotification: (text: string) => void heard.push(text),
    onEnd: (e: Error | null) => void ends.push(e),
  };
  return { ...(await channel.listen(filter, listener, { timeoutMs: 20_000 })), heard, ends };
}

const toolsChanged = { method: 'notifications/tools/list_changed' };
const updated = (uri: string) => ({ method: 'notifications/resources/updated', params: { uri } });
const methodsOf = ({ heard }: Heard) => heard.map((text) => (JSON.parse(text) as { method: string }).method);

/** A server whose streams for listeners are in our hands, newest last; a stream that is closed leaves the list. */
interface Telling {
  upstream: WireUpstream;
  open: ServerResponse[];
  /** Tells by every open stream, as a server of that era marks it. */
  tell(message: { method: string; params?: object }): void;
}

async function legacyTelling(): Promise<Telling> {
  const open: ServerResponse[] = [];
  const upstream = closing(
    await startWire(
      legacy((message, res, nth) => {
        if (message.http !== 'GET') return answer(res, message, { tools: [{ name: `t${nth}` }] });
        stream(res);
        open.push(res);
        res.on('close', () => open.splice(open.indexOf(res), 1));
      }),
    ),
  );
  return { upstream, open, tell: (message) => open.forEach((res) => event(res, message)) };
}

async function modernTelling(): Promise<Telling> {
  const open: ServerResponse[] = [];
  const ids = new Map<ServerResponse, number | undefined>();
  const marked = (res: ServerResponse, params: object = {}) => ({
    ...params,
    _meta: { 'io.modelcontextprotocol/subscriptionId': ids.get(res) },
  });
  const upstream = closing(
    await startWire(
      modern((message, res, nth) => {
        if (message.method !== 'subscriptions/listen') {
          const tools = [{ name: `t${nth}`, inputSchema: {} }];
          return answer(res, message, { resultType: 'complete', tools, ttlMs: 60_000, cacheScope: 'private' });
        }
        stream(res);
        ids.set(res, message.id);
        open.push(res);
        res.on('close', () => open.splice(open.indexOf(res), 1));
        const { promptsListChanged: _, ...notifications } = message.params?.notifications as ListenFilter;
        event(res, { method: 'notifications/subscriptions/acknowledged', params: marked(res, { notifications }) });
      }),
    ),
  );
  const tell: Telling['tell'] = ({ method, params }) =>
    open.forEach((res) => event(res, { method, params: marked(res, params) }));
  return { upstream, open, tell };
}

const eras: [string, () => Promise<Telling>][] = [
  ['legacy', legacyTelling],
  ['modern', modernTelling],
];

describe.each(eras)('listening to a %s server', (era, startTelling) => {
  verifies(
    'channel:listen',
    'sends each listener the notifications of its filter, and reports the supported ones',
    async () => {
      const { upstream, open, tell } = await startTelling();
      const channel = channelTo(upstream.url);
      const tools = await listen(channel, { toolsListChanged: true, promptsListChanged: true });
      const docs = await listen(channel, { resourceSubscriptions: ['docs://a', 'docs://b'] });
      expect(tools.honoured).toEqual({ toolsListChanged: true });
      expect(docs.honoured).toEqual({ resourceSubscriptions: ['docs://a', 'docs://b'] });
      await until(() => open.length === 1, 'one stream is left');
      tell(toolsChanged);
      tell(updated('docs://b'));
      tell(updated('docs://other'));
      tell({ method: 'notifications/prompts/list_changed' });
      tell(updated('docs://a'));
      await until(() => docs.heard.length === 2, 'both were told');
      expect(methodsOf(tools)).toContain(toolsChanged.method);
      expect(docs.heard.map((text) => (JSON.parse(text) as { params: object }).params)).toEqual([
        { uri: 'docs://b' },
        { uri: 'docs://a' },
      ]);
      for (const text of [...tools.heard, ...docs.heard]) expect(text).not.toContain('subscriptionId');
    },
  );

  verifies('channel:listen', 'costs one stream for all, which closes with the last of them', async () => {
    const { upstream, open, tell } = await startTelling();
    const channel = channelTo(upstream.url);
    const all = await Promise.all(times(20, () => listen(channel, { toolsListChanged: true })));
    expect(open).toHaveLength(1);
    tell(toolsChanged);
    await until(() => all.every(({ heard }) => heard.length === 1), 'all were told');
    await Promise.all(all.slice(1).map((one) => one.close()));
    expect(open).toHaveLength(1);
    tell(toolsChanged);
    await until(() => all[0].heard.length === 2, 'the last one was told');
    expect(all[1].heard).toHaveLength(1);
    await all[0].close();
    await until(() => open.length === 0, 'the stream is closed');
    const streams = upstream.seen.filter(({ http, method }) => http === 'GET' || method === 'subscriptions/listen');
    expect(streams).toHaveLength(1);
  });

  verifies('channel:listen', 'continues after the stream broke, and ends with the channel', async () => {
    const { upstream, open, tell } = await startTelling();
    const channel = channelTo(upstream.url);
    const one = await listen(channel, { toolsListChanged: true, resourceSubscriptions: ['docs://a'] });
    open[0].destroy();
    await until(() => open.length === 1 && !open[0].destroyed, 'there is a new stream');
    await until(() => {
      tell(updated('docs://a'));
      return one.heard.length > 0;
    }, 'it was told');
    expect(one.ends).toEqual([]);
    await channel.close();
    expect(one.ends).toEqual([null]);
    await until(() => open.length === 0, 'the stream is closed');
  });

  verifies('channel:listen', 'makes what is remembered of the tools stale', async () => {
    const { upstream, tell } = await startTelling();
    const link = closing(new UpstreamHandle(channelIn(egress, upstream.url), owner));
    const first = await link.catalog.list(20_000);
    expect(await link.catalog.list(20_000)).toEqual(first);
    const one = await listen(link, { toolsListChanged: true });
    expect(upstream.count('tools/list')).toBe(1);
    tell(toolsChanged);
    await until(() => one.heard.length === 1, 'it was told');
    expect(await link.catalog.list(20_000)).not.toEqual(first);
    expect(upstream.count('tools/list')).toBe(2);
    expect(era).toMatch(/legacy|modern/);
  });
});

describe('listening to a legacy server', () => {
  const uris = ({ seen }: WireUpstream, method: string) =>
    seen.filter((message: WireMessage) => message.method === method).map(({ params }) => params?.uri);

  verifies('channel:listen', 'subscribes to a resource once for all listeners, until the last one ends', async () => {
    const { upstream } = await legacyTelling();
    const channel = channelTo(upstream.url);
    const [a, b] = await Promise.all([
      listen(channel, { resourceSubscriptions: ['docs://a', 'docs://b'] }),
      listen(channel, { resourceSubscriptions: ['docs://b', 'docs://c'] }),
    ]);
    expect(uris(upstream, 'resources/subscribe').sort()).toEqual(['docs://a', 'docs://b', 'docs://c']);
    await a.close();
    expect(uris(upstream, 'resources/unsubscribe')).toEqual(['docs://a']);
    await b.close();
    expect(uris(upstream, 'resources/unsubscribe').sort()).toEqual(['docs://a', 'docs://b', 'docs://c']);
  });

  verifies('channel:listen', 'honours nothing where there is no stream, and opens none without a session', async () => {
    const without = closing(
      await startWire(
        legacy((message, res) => (message.http === 'GET' ? res.writeHead(405).end() : answer(res, message, {}))),
      ),
    );
    expect((await listen(channelTo(without.url), { toolsListChanged: true })).honoured).toEqual({});
    const stateless = closing(await startWire(legacy((message, res) => answer(res, message, {}), { sessions: false })));
    expect((await listen(channelTo(stateless.url), { toolsListChanged: true })).honoured).toEqual({});
    expect(stateless.count('GET')).toBe(0);
  });

  verifies('channel:listen', 'continues in the new session when the server lost the old one', async () => {
    let isForgotten = false;
    const open: ServerResponse[] = [];
    const upstream = closing(
      await startWire(
        legacy((message, res) => {
          if (isForgotten && message.headers['mcp-session-id'] === 'session-1') return res.writeHead(404).end();
          if (message.http !== 'GET') return answer(res, message, {});
          stream(res);
          open.push(res);
        }),
      ),
    );
    const channel = channelTo(upstream.url);
    const one = await listen(channel, { toolsListChanged: true, resourceSubscriptions: ['docs://a'] });
    isForgotten = true;
    await channel.request({ method: 'tools/list', timeoutMs: 20_000 });
    await until(() => open.length === 2, 'there is a stream of the new session');
    expect(upstream.seen.filter(({ http }) => http === 'GET').at(-1)?.headers['mcp-session-id']).toBe('session-2');
    await until(() => uris(upstream, 'resources/subscribe').length === 2, 'it is subscribed to anew');
    event(open[1], toolsChanged);
    await until(() => one.heard.length === 2, 'it was told of the new session, and of the change');
  });

  verifies('channel:reinitialize', 'continues after the server was killed between two updates', async () => {
    const server = closing(await startNotificationServer());
    const one = await listen(channelTo(server.url), { toolsListChanged: true, resourceSubscriptions: ['docs://a'] });
    await server.tell();
    await until(() => one.heard.length === 2, 'both changes came');
    expect(methodsOf(one)).toEqual([toolsChanged.method, 'notifications/resources/updated']);
    await server.restart();
    // Of itself, without a call: the lists of the new program may be others.
    await until(() => one.heard.length === 3, 'the lists are said to have changed');
    await server.tell();
    await until(() => one.heard.length === 5, 'both changes came again');
    expect(methodsOf(one).slice(2)).toEqual([
      toolsChanged.method,
      toolsChanged.method,
      'notifications/resources/updated',
    ]);
    expect(one.ends).toEqual([]);
  });

  verifies('channel:reinitialize', 'honours nothing where 404 is all that a new session gets too', async () => {
    const upstream = closing(
      await startWire(
        legacy((message, res) => (message.http === 'GET' ? res.writeHead(404).end() : answer(res, message, {}))),
      ),
    );
    const channel = channelTo(upstream.url);
    for (let round = 0; round < 3; round += 1) {
      const one = await listen(channel, { toolsListChanged: true });
      expect(one.honoured).toEqual({});
      await one.close();
    }
    expect(upstream.count('initialize')).toBe(2);
  });

  verifies('channel:reinitialize', 'begins in a new session, also if the old one sent nothing', async () => {
    let isNew = false;
    const open: ServerResponse[] = [];
    const upstream = closing(
      await startWire(
        legacy((message, res) => {
          const isLost = isNew && message.headers['mcp-session-id'] === 'session-1';
          if (isLost || (!isNew && message.http === 'GET')) return res.writeHead(isLost ? 404 : 405).end();
          if (message.http !== 'GET') return answer(res, message, {});
          stream(res);
          open.push(res);
        }),
      ),
    );
    const channel = channelTo(upstream.url);
    const one = await listen(channel, { toolsListChanged: true });
    expect(one.honoured).toEqual({});
    isNew = true;
    await channel.request({ method: 'tools/list', timeoutMs: 20_000 });
    await until(() => open.length === 1, 'the new session is listened to');
    event(open[0], toolsChanged);
    await until(() => one.heard.length > 0, 'it was told');
  });

  it('is not disturbed by what the server asks by that stream', async () => {
    const { upstream, open } = await legacyTelling();
    await listen(channelTo(upstream.url), { toolsListChanged: true });
    event(open[0], { id: 'srv-1', method: 'elicitation/create', params: {} });
    const posted = await until(() => upstream.seen.find(({ id }) => String(id) === 'srv-1'), 'it was answered');
    expect(posted).toMatchObject({ error: { code: -32601 } });
  });
});

describe('listening to a modern server', () => {
  verifies('channel:listen', 'works with a server of the official SDK', async () => {
    const upstream = closing(await startSdkV2({ legacy: 'reject' }));
    const channel = channelTo(upstream.url);
    const one = await listen(channel, { toolsListChanged: true, resourcesListChanged: true });
    expect(one.honoured).toEqual({ toolsListChanged: true });
    upstream.toolsChanged();
    await until(() => one.heard.length === 1, 'it was told');
    expect(JSON.parse(one.heard[0])).toEqual({ jsonrpc: '2.0', ...toolsChanged, params: expect.anything() });
    await one.close();
  });

  verifies('channel:listen', 'opens the stream of a wider filter before it closes the old one', async () => {
    const { upstream, open } = await modernTelling();
    const channel = channelTo(upstream.url);
    await listen(channel, { toolsListChanged: true });
    const [first] = open;
    let wasOpen: boolean | undefined;
    first.on('close', () => (wasOpen = upstream.count('subscriptions/listen') === 2));
    await listen(channel, { toolsListChanged: true, resourceSubscriptions: ['docs://a'] });
    await until(() => wasOpen !== undefined, 'the first stream was closed');
    expect(wasOpen).toBe(true);
    expect(upstream.seen.at(-1)?.params?.notifications).toEqual({
      toolsListChanged: true,
      resourceSubscriptions: ['docs://a'],
    });
  });
});
