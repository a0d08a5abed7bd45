import { Injectable, Module } from '@nestjs/common';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { failedHandlers } from '../../../src/extensions/events/event-deliveries.repository.js';
import { EventsService } from '../../../src/extensions/events/events.service.js';
import { ChangesService } from '../../../src/extensions/changes/changes.service.js';
import { type CallEvent, type ChangeEvent, defineModule, OnEvent } from '../../../src/extension.js';
import { longIt } from '../../support/jest/globals.mjs';
import { testAccount, testApp } from '../../support/app.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { send } from '../../support/mcp/calls.js';
import { publishExternal } from '../../support/releases/releases.js';
import { answer, legacy, startWire } from '../../support/special-upstreams/wire-upstream.js';
import { until } from '../../support/until.js';
import { closing } from '../../support/upstream/upstream-clients.js';

const heard: (ChangeEvent | CallEvent)[] = [];
let refused: string[] = [];
/** What a handler does before it ends. */
let act: (event: ChangeEvent) => Promise<void> = () => Promise.resolve();

@Injectable()
class Listener {
  @OnEvent('release.finished', 'connection.state', 'contract.changed', 'server.created', 'namespace.created')
  async changed(event: ChangeEvent) {
    await act(event);
    heard.push(event);
  }

  @OnEvent('call.finished')
  called(event: CallEvent) {
    heard.push(event);
  }

  @OnEvent('server.deleted')
  refuse({ id }: ChangeEvent) {
    refused.push(id);
    throw new Error('Not today');
  }
}

@Module({ providers: [Listener] })
class ListenerModule {}

const listener = defineModule({ name: 'listener', module: () => ListenerModule, roles: ['api', 'worker'] });
const app = testApp({}, {}, [listener]);
const owner = testAccount(app);

beforeEach(() => {
  heard.length = 0;
  refused = [];
  act = () => Promise.resolve();
});

const eventsOf = (name: string, target?: string) =>
  heard.filter((event) => event.name === name && (!target || ('name' in event.target && event.target.name === target)));
const waiting = async () =>
  (await app.database.query<{ count: number }[]>('SELECT count(*)::int FROM event_deliveries'))[0].count;
const allDelivered = () => until(async () => (await waiting()) === 0, 'every event is delivered');

describe('@OnEvent', () => {
  it('receives changes of people, and ends of releases, new contracts and calls', async () => {
    const tools = [{ name: 'run', inputSchema: { type: 'object' } }];
    const { url } = closing(
      await startWire(
        legacy((message, res) => answer(res, message, message.method === 'tools/list' ? { tools } : { content: [] })),
      ),
    );
    const namespace = await createNamespace(app, owner);
    const server = await createServer(app, owner, { namespace });
    await publishExternal(app, owner, server, { upstreamUrl: url });
    tools[0].name = 'other';
    await publishExternal(app, owner, server, { upstreamUrl: url });
    const { path } = await createConnection(app, owner, { mcpUrl: url }, { namespace, connectionId: 'c' });
    expect((await send(app, owner, `${path}/.tools/other`, {})).status).toBe(200);
    await allDelivered();
    expect(eventsOf('server.created', server)).toEqual([
      {
        id: expect.any(String),
        name: 'server.created',
        at: expect.any(Date),
        accountId: owner.id,
        actorId: owner.id,
        target: { id: expect.any(String), name: server },
        before: null,
        after: expect.objectContaining({ visibility: 'public' }),
      },
    ]);
    expect(eventsOf('release.finished')).toMatchObject([
      { actorId: null, target: { name: `${server}@1` }, after: { number: 1, status: 'SUCCESS' } },
      { target: { name: `${server}@2` }, after: { number: 2, status: 'SUCCESS' } },
    ]);
    expect(eventsOf('contract.changed', server)).toMatchObject([{ after: { changeCount: 2, foundBy: 'release' } }]);
    await until(() => eventsOf('call.finished').length > 0, 'the call is delivered');
    expect(eventsOf('call.finished')).toMatchObject([
      { target: { kind: 'connection' }, tool: 'other', outcome: 'ok', accountId: owner.id },
    ]);
    const { body } = await app.as(owner).get(`/accounts/${owner.id}/changes`);
    expect((body as { changes: { action: string }[] }).changes.map(({ action }) => action)).not.toContain(
      'release.finished',
    );
  });

  it('receives the states of a connection', async () => {
    let isThere = true;
    const script = legacy((message, res) => answer(res, message, { tools: [] }));
    const { url } = closing(
      await startWire((message, res, nth) => (isThere ? script(message, res, nth) : res.writeHead(401).end())),
    );
    const { path } = await createConnection(app, owner, { mcpUrl: url });
    isThere = false;
    await send(app, owner, `${path}/.tools/run`, {});
    await until(() => eventsOf('connection.state').length === 2, 'both are delivered');
    expect(eventsOf('connection.state')).toMatchObject([
      { before: { state: 'disconnected' }, after: { state: 'connected', reason: 'ok' } },
      { before: { state: 'connected' }, after: { state: 'auth_required' }, actorId: null },
    ]);
  });

  it('receives a failed event again, in order for one target, and none of a change that was rolled back', async () => {
    const namespace = await createNamespace(app, owner);
    await allDelivered();
    heard.length = 0;
    const ids: string[] = [];
    act = async ({ id }) => {
      ids.push(id);
      if (ids.length === 1) throw new Error('Once');
    };
    const record = (name: string) =>
      app.database.query(
        `INSERT INTO changes (account_id, action, target_id, target) VALUES ($1, 'namespace.created', $1, $2)`,
        [owner.id, name],
      );
    await record(`${namespace}-1`);
    await record(`${namespace}-2`);
    await app.database
      .transaction(async (tx) => {
        await tx.query(
          `INSERT INTO changes (account_id, action, target_id, target) VALUES ($1, 'namespace.created', $1, 'undone')`,
          [owner.id],
        );
        throw new Error('Undone');
      })
      .catch(() => undefined);
    await until(() => eventsOf('namespace.created').length === 2, 'both are delivered');
    const [first, second] = eventsOf('namespace.created');
    expect([first, second]).toMatchObject([
      { target: { name: `${namespace}-1` } },
      { target: { name: `${namespace}-2` } },
    ]);
    expect(ids).toEqual([first.id, first.id, second.id]);
    await allDelivered();
    expect(eventsOf('namespace.created')).toHaveLength(2);
  });

  it('is given up if it always fails', async () => {
    const namespace = await createNamespace(app, owner);
    const server = await createServer(app, owner, { namespace });
    await app
      .as(owner)
      .delete(`/servers/${encodeURIComponent(server)}`)
      .expect(200);
    await until(() => refused.length === 1, 'it is tried');
    const attempt =
      'UPDATE event_deliveries SET attempts = 14, due_at = now() WHERE failed_at IS NULL AND attempts > 0';
    await until(async () => {
      await app.database.query(`${attempt} AND error IS NOT NULL`);
      return refused.length === 2;
    }, 'it is tried for the last time');
    const failed = await until(async () => {
      const rows = await app.database.query<object[]>('SELECT * FROM event_deliveries WHERE failed_at IS NOT NULL');
      return rows.length > 0 && rows;
    }, 'it is given up');
    expect(failed).toMatchObject([{ handler: 'ListenerModule.Listener.refuse', attempts: 15, error: 'Not today' }]);
    expect(await failedHandlers(app.database)).toEqual([
      'ListenerModule.Listener.refuse (1 event, last error: Not today)',
    ]);
    await app.database.query('DELETE FROM event_deliveries');
  });

  it('receives each of many events once from two processes', async () => {
    const worker = await app.sibling({ ROLES: 'api,worker' });
    await app.database.query(
      `INSERT INTO changes (account_id, action, target_id, target)
       SELECT $1, 'namespace.created', gen_random_uuid(), 'many-' || n FROM generate_series(1, 1000) n`,
      [owner.id],
    );
    await Promise.all([app, worker].map((process) => process.get(EventsService).deliver()));
    await allDelivered();
    const names = eventsOf('namespace.created').map(({ target }) => 'name' in target && target.name);
    expect([names.length, new Set(names).size]).toEqual([1000, 1000]);
    await worker.close();
  });

  longIt('receives 10,000 waiting events of one target in order', async () => {
    await app.database.query(
      `INSERT INTO changes (account_id, action, target_id, target)
       SELECT $1, 'namespace.created', $1, 'waiting-' || n FROM generate_series(1, 10000) n ORDER BY n`,
      [owner.id],
    );
    // Much longer than it takes, if the time of each claim does not grow with the number of waiting events.
    await until(async () => (await waiting()) === 0, 'every event is delivered', 150_000);
    const names = eventsOf('namespace.created').map(({ target }) => 'name' in target && target.name);
    expect(names).toEqual(Array.from({ length: 10_000 }, (_, index) => `waiting-${index + 1}`));
  });

  it('loses events of facts after 7 days', async () => {
    await app.database.query(
      `INSERT INTO changes (account_id, action, target_id, target, is_fact, created_at)
       SELECT $1, 'release.finished', $1, 'old-' || age, true, now() - age * interval '1 day' FROM unnest(ARRAY[6, 8]) age`,
      [owner.id],
    );
    await app.get(ChangesService).deleteOld(new Date());
    const left = await app.database.query(`SELECT target FROM changes WHERE target LIKE 'old-%'`);
    expect(left).toEqual([{ target: 'old-6' }]);
  });
});
