import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, it } from '@jest/globals';
import { beginLines } from './line-answer.js';

it('a line that comes behind the end of its answer ends nothing but itself', async () => {
  const faults: Error[] = [];
  const server = createServer((_, response) => {
    response.on('error', (error) => faults.push(error));
    const tell = beginLines<number>(response);
    tell(1);
    response.end();
    tell(2);
    response.once('close', () => tell(3));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  expect(await answer.text()).toBe('1\n');
  server.close();
  server.closeAllConnections();
  await once(server, 'close');
  expect(faults).toEqual([]);
});
