import { ModulesContainer } from '@nestjs/core';
import { beforeAll, describe, expect } from '@jest/globals';
import supertest from 'supertest';
import { createApp } from '../../../src/app.setup.js';
import { declarationOf } from '../../../src/modules/auth/access.service.js';
import { generateApiKey } from '../../../src/modules/auth/api-key.js';
import { routeTable } from '../../../src/platform/http/route-table.js';
import { testAccount, testApp } from '../../support/app.js';
import { createServer } from '../../support/factories.js';
import { images, uploadIcon } from '../../support/releases/icons.js';
import { pathOf, releaseServer } from '../../support/database/server-rows.js';
import { verifies } from '../../support/verifies.js';

const app = testApp({ PUBLIC_READS: 'true' });
const owner = testAccount(app);
let name: string;

beforeAll(async () => {
  name = await createServer(app, owner, { displayName: 'Weather' });
  await releaseServer(app, name);
  await uploadIcon(app, owner, name, images['image/png']);
});

const readable = () => ['/servers', `/servers?q=weather`, pathOf(name), pathOf(name, '/icon')];

function get(path: string, authorization?: string): supertest.Test {
  const request = supertest(app.url).get(path);
  return authorization === undefined ? request : request.set('authorization', authorization);
}

describe('with PUBLIC_READS=true', () => {
  verifies('public-reads:on', 'servers and icons are read without a key', async () => {
    for (const path of readable()) {
      const keyed = await get(path, `Bearer ${owner.key}`);
      for (const authorization of [undefined, 'Bearer', 'Bearer ']) {
        const response = await get(path, authorization);
        expect([path, response.status, response.text]).toEqual([path, 200, keyed.text]);
      }
    }
    expect((await get('/servers/never%2Fwas')).body).toEqual(expect.objectContaining({ error: 'Server not found' }));
  });

  verifies('public-reads:wrong-key', 'a wrong key stays refused', async () => {
    for (const path of readable()) {
      for (const authorization of ['Bearer nonsense', `Bearer ${generateApiKey()}`, 'Basic bWU6bWU=', owner.key]) {
        const response = await get(path, authorization);
        expect([path, response.status, response.body]).toEqual([
          path,
          401,
          expect.objectContaining({ error: 'Unauthorized' }),
        ]);
      }
    }
  });

  verifies('public-reads:nothing-else', 'no other read and no write is possible without a key', async () => {
    await app.as(owner).patch(pathOf(name), { unlisted: true });
    const [namespace = ''] = name.split('/');
    for (const query of [
      '',
      `namespace=${namespace}`,
      `ownerId=${owner.id}`,
      'ownerId=00000000-0000-0000-0000-000000000000',
    ]) {
      expect((await get(`/servers?${query}`)).body.servers).toEqual([]);
    }
    // An unlisted server can be read by its name.
    expect((await get(pathOf(name))).status).toBe(200);
    const routes = routeTable((await createApp(app.env, { preview: true })).get(ModulesContainer));
    const closed = routes.filter((route) => {
      const rule = declarationOf(route);
      return rule !== 'public' && rule?.anonymous !== true && rule?.page !== true;
    });
    expect(closed.length).toBeGreaterThan(25);
    for (const { method, path } of closed) {
      const filled = path.replace(':qualifiedName', encodeURIComponent(name)).replace(/[:*](\w+)/g, namespace);
      const verb = method.toLowerCase() as 'get' | 'put' | 'post' | 'patch' | 'delete';
      const { status } = await supertest(app.url)[verb](filled);
      expect([method, path, status]).toEqual([method, path, 401]);
    }
    const open = routes.flatMap((route) => {
      const rule = declarationOf(route);
      return rule !== 'public' && rule?.anonymous ? [route.method] : [];
    });
    expect(new Set(open)).toEqual(new Set(['GET']));
  });
});
