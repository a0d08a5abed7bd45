import { createServer } from 'node:http';
import { connect } from 'node:net';
import { once } from 'node:events';
import { describe, expect } from '@jest/globals';
import { until } from '../../../test/support/until.js';
import { verifies } from '../../../test/support/verifies.js';
import { acceptMore } from './accept.js';

describe('acceptMore', () => {
  verifies('http:accept', 'accepts several connections in a turn, counts them, and closes its handles', async () => {
    const server = createServer((_, response) => response.end('ok'));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    await acceptMore(server);
    const { port } = server.address() as { port: number };
    server.maxConnections = 60;
    let [accepted, dropped, turns] = [0, 0, 0];
    server.on('connection', () => (accepted += 1)).on('drop', () => (dropped += 1));
    const clients = Array.from({ length: 80 }, () => connect(port, '127.0.0.1').on('error', () => undefined));
    const turn = () => {
      turns += 1;
      for (const from = performance.now(); performance.now() - from < 2;);
      if (accepted + dropped < clients.length) setImmediate(turn);
    };
    turn();
    await until(() => accepted + dropped === clients.length, 'all are accepted');
    expect([accepted, dropped]).toEqual([60, 20]);
    expect(turns).toBeLessThan(40);
    clients.forEach((client) => client.destroy());
    server.close();
    await once(server, 'close');
    const late = connect(port, '127.0.0.1');
    expect(await once(late, 'error')).toMatchObject([{ code: 'ECONNREFUSED' }]);
  });
});
