import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Env } from '../../config/env.js';
import { clientAddress, isTrusted, peerOf, plainAddress } from './client-address.js';

/** Below this, unread bytes of a connection are not counted: streams with backpressure stay below it. */
const COUNTED_BYTES_MIN = 64 * 1024;

const ADDRESS = Symbol('client address');

type AddressedSocket = Socket & { [ADDRESS]?: string };

/**
 * Bounds the bytes of answers that clients have not read, in all and for one address. Beyond a bound the connection that
 * has been behind for the longest time is cut, which is a reader that stalls rather than one that reads a large answer.
 */
export class UnreadAnswers {
  /** Address of each connection that is behind, longest first; null where the bound for one address does not apply. */
  private readonly behind = new Map<Socket, string | null>();

  constructor(private readonly env: Pick<Env, 'httpUnreadBytes' | 'trustProxy'>) {}

  /** Counts what is written to a connection from now on. */
  watch(socket: Socket): void {
    const write: (...given: never[]) => boolean = socket.write.bind(socket);
    socket.write = (...given: never[]) => {
      const isTaken = write(...given);
      if (socket.writableLength >= COUNTED_BYTES_MIN) this.bound(socket);
      return isTaken;
    };
  }

  /** Names the client of what is written next, where a proxy sends requests of many. */
  address(request: IncomingMessage): void {
    const { trustProxy } = this.env;
    if (trustProxy) (request.socket as AddressedSocket)[ADDRESS] = clientAddress(request, trustProxy);
  }

  private bound(socket: AddressedSocket): void {
    const { httpUnreadBytes, trustProxy } = this.env;
    if (!this.behind.has(socket)) {
      const address = socket[ADDRESS] ?? plainAddress(socket.remoteAddress ?? '');
      this.behind.set(socket, isTrusted(address, trustProxy) ? null : peerOf(address));
      const forget = () => {
        socket.off('drain', forget).off('close', forget);
        this.behind.delete(socket);
      };
      socket.on('drain', forget).on('close', forget);
    }
    const peer = this.behind.get(socket);
    this.cut([...this.behind.keys()], httpUnreadBytes);
    if (peer)
      this.cut(
        [...this.behind.keys()].filter((one) => this.behind.get(one) === peer),
        httpUnreadBytes / 4,
      );
  }

  /** Cuts connections, longest behind first, until the others hold at most `bytesMax`. The last one may hold more. */
  private cut(sockets: Socket[], bytesMax: number): void {
    let bytes = sockets.reduce((sum, socket) => sum + socket.writableLength, 0);
    for (const socket of sockets.slice(0, -1)) {
      if (bytes <= bytesMax) return;
      bytes -= socket.writableLength;
      this.behind.delete(socket);
      socket.destroy();
    }
  }
}
