import { beforeAll, describe, expect, it } from '@jest/globals';
import type { Target } from '../../../src/modules/targets/target.types.js';
import { TargetsService, type TargetAddress } from '../../../src/modules/targets/targets.service.js';
import { testAccount, testApp } from '../../support/app.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';

const app = testApp();
const owner = testAccount(app);
let namespace: string;
let server: string;
let connectionId: string;

beforeAll(async () => {
  namespace = await createNamespace(app, owner);
  server = (await createServer(app, owner, { namespace })).split('/')[1] ?? '';
  connectionId = (await createConnection(app, owner, { transport: 'uplink' }, { namespace })).connectionId;
});

describe('a target', () => {
  const cases: [string, () => TargetAddress, (() => Partial<Target>) | null][] = [
    ['a namespace', () => ({ kind: 'namespace', namespace, name: '' }), () => ({ name: '', title: namespace })],
    ['a server', () => ({ kind: 'server', namespace, name: server }), () => ({ name: server, visibility: 'public' })],
    [
      'a server in capitals',
      () => ({ kind: 'server', namespace, name: server.toUpperCase() }),
      () => ({ name: server }),
    ],
    ['a connection', () => ({ kind: 'connection', namespace, name: connectionId }), () => ({ name: connectionId })],
    ['a connection by the name of a server', () => ({ kind: 'connection', namespace, name: server }), null],
    ['a server by the name of a connection', () => ({ kind: 'server', namespace, name: connectionId }), null],
    ['a missing namespace', () => ({ kind: 'namespace', namespace: 'no-such-namespace', name: '' }), null],
    ['a missing slug', () => ({ kind: 'server', slug: 'no-such-slug' }), null],
    ['a name with a zero byte', () => ({ kind: 'connection', namespace, name: 'a\u0000' }), null],
  ];
  it.each(cases)('is found by its names, or is missing: %s', async (_, address, expected) => {
    const target = await app.get(TargetsService).find(address());
    if (!expected) return expect(target).toBeNull();
    expect(target).toMatchObject({ namespace, ownerId: owner.id, suspended: null, ...expected() });
    expect(await app.get(TargetsService).findById(target as Target)).toEqual(target);
  });

  it('is found by the slug of its run endpoint', async () => {
    const slug = `${namespace}--${server}`.toUpperCase();
    const target = await app.get(TargetsService).find({ kind: 'server', slug });
    expect(target).toMatchObject({ kind: 'server', namespace, name: server });
  });

  it('says why it, or its namespace, is suspended', async () => {
    await app.as(app.operator).put(`/namespaces/${namespace}/suspension`, { reason: 'Under review' });
    const names: TargetAddress[] = [
      { kind: 'namespace', namespace, name: '' },
      { kind: 'server', namespace, name: server },
      { kind: 'connection', namespace, name: connectionId },
    ];
    for (const name of names) {
      expect(await app.get(TargetsService).find(name)).toMatchObject({ suspended: 'Under review' });
    }
  });
});
