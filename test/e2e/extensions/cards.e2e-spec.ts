import { Injectable, Module } from '@nestjs/common';
import { describe, expect, it } from '@jest/globals';
import { defineModule, ServerCardField } from '../../../src/extension.js';
import { testAccount, testApp } from '../../support/app.js';
import { createNamespace, createServer } from '../../support/factories.js';

let isBroken = false;

@Injectable()
@ServerCardField({ key: 'wishes', schema: { type: 'integer' }, absent: 0 })
class WishesCount {
  fieldsFor(): Promise<Map<string, unknown>> {
    if (isBroken) throw new Error('No wishes today');
    return Promise.resolve(new Map());
  }
}

@Injectable()
@ServerCardField({ key: 'hopes', schema: { type: 'integer' }, absent: 1 })
class HopesCount {
  fieldsFor(): Promise<Map<string, unknown>> {
    return Promise.resolve(new Map());
  }
}

@Module({ providers: [WishesCount, HopesCount] })
class WishesModule {}

const wishesModule = defineModule({ name: 'wishes', module: () => WishesModule });
const app = testApp({ METRICS_TOKEN: 'open' }, {}, [wishesModule]);
const owner = testAccount(app);

describe('a member of the cards of servers', () => {
  it('is left out and counted if reading it fails', async () => {
    const server = await createServer(app, owner, { namespace: await createNamespace(app, owner) });
    const read = () => app.as(owner).get(`/servers/${encodeURIComponent(server)}`);
    expect((await read()).body).toMatchObject({ wishes: 0, hopes: 1 });
    isBroken = true;
    const { status, body } = await read();
    expect(status).toBe(200);
    expect(body).toMatchObject({ hopes: 1 });
    expect(body).not.toHaveProperty('wishes');
    const listed = await app.as(owner).get('/servers?fields=hopes,wishes');
    expect(listed.body.servers).toContainEqual({ hopes: 1 });
    const { text } = await app.as().get('/metrics');
    expect(text).toContain('slipway_server_card_failures_total 2');
  });
});
