import { EventEmitter } from 'node:events';
import { describe, expect, jest } from '@jest/globals';
import type { WebSocket } from 'ws';
import { verifies } from '../../../../test/support/verifies.js';
import { TunnelSocket } from './tunnel-socket.js';

/** The socket of a local server that answers a ping when the test says so. */
class FakeSocket extends EventEmitter {
  readonly OPEN = 1;
  readonly readyState = 1;
  readonly ping = jest.fn();
  readonly terminate = jest.fn();
}

describe('the pings of a tunnel', () => {
  verifies('uplink:ping', 'may stay unanswered twice in a row; a pong resets the count', () => {
    const socket = new FakeSocket();
    const tunnel = new TunnelSocket(socket as unknown as WebSocket, () => undefined);
    for (let round = 0; round < 3; round += 1) {
      socket.emit('pong');
      tunnel.ping();
      tunnel.ping();
    }
    expect([socket.ping.mock.calls.length, socket.terminate.mock.calls.length]).toEqual([7, 0]);
    tunnel.ping();
    expect([socket.ping.mock.calls.length, socket.terminate.mock.calls.length]).toEqual([7, 1]);
  });
});
