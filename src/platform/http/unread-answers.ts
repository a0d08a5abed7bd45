import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Env } from '../../config/env.js';
import { clientAddress, isTrusted, peerOf } from './client-address.js';

/** Below this, unread bytes of a connection are not counted: streams with backpressure stay below it. */
const COUNTED_BYTES_MIN = 64 * 1024;

/**
 * Bounds the bytes of answers that clients have not read, in all and for one address. Beyond a bound the connection that
 * has been behind for the longest time is cut, which is a reader that stalls rather than one that reads a large answer.
 */
export class UnreadAnswers {
  /** Address of each connection that is behind, longest first; null where the bound for one address does not apply. */
  private readonly behind = new Map<Socket, string | null>();

  constructor(private readonly env: Pick<Env, 'httpUnreadBytes' | 'trustProxy'>) {}

  /** Called after each write to a response. */
  check(response: ServerResponse): void {
    const { socket, req } = response;
    if (!socket || socket.writableLength < COUNTED_BYTES_MIN) return;
    if (!this.behind.has(socket)) {
      const address = clientAddress(req, this.env.trustProxy);
      this.behind.set(socket, isTrusted(address, this.env.trustProxy) ? null : peerOf(address));
      const forget = () => {
        socket.off('drain', forget).off('close', forget);
        this.behind.delete(socket);
      };
      socket.on('drain', forget).on('close', forget);
    }
    const { httpUnreadBytes } = this.env;
    const peer = this.behind.get(socket);
    this.bound([...this.behind.keys()], httpUnreadBytes);
    if (peer)
      this.bound(
        [...this.behind.keys()].filter((one) => this.behind.get(one) === peer),
        httpUnreadBytes / 4,
      );
  }

  /** Cuts connections, longest behind first, until the others hold at most `bytesMax`. The last one may hold more. */
  private bound(sockets: Socket[], bytesMax: number): void {
    let bytes = sockets.reduce((sum, socket) => sum + socket.writableLength, 0);
    for (const socket of sockets.slice(0, -1)) {
      if (bytes <= bytesMax) return;
      bytes -= socket.writableLength;
      this.behind.delete(socket);
      socket.destroy();
    }
  }
}
