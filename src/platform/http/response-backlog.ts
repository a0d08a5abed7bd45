import type { IncomingMessage, ServerResponse } from 'node:http';
import type { BlockList, Socket } from 'node:net';
import { halfClose } from './body/unread-body.js';
import { clientAddress, isTrusted, peerOf, plainAddress } from './client-address.js';

/** Size below which unread bytes of a connection are not counted: streams with backpressure stay below it. */
const COUNTED_BYTES_MIN = 64 * 1024;

/** Limit of requests of a connection without a response: the current one and those behind it. */
const UNANSWERED_MAX = 16;

/** Node's code that makes its parser stop reading after a request. */
const READ_NO_FURTHER = 2;

const ADDRESS = Symbol('client address');

type AddressedSocket = Socket & { [ADDRESS]?: string };

type ParsedSocket = Socket & { parser?: { onIncoming: () => number } };

/**
 * Bytes are limited in total and per address. Above the limit the connection that has been behind longest is closed:
 * probably a stalled reader, not one that reads a large response.
 */
export class ResponseBacklog {
  /** Sockets behind, the longest first; the address is null if the limit for one address does not apply. */
  private readonly behind = new Map<Socket, string | null>();
  /** Responses that Node holds back until the previous ones are sent, of clients that do not wait for responses. */
  private readonly heldBack = new WeakMap<Socket, ServerResponse[]>();
  private readonly full = new WeakSet<Socket>();

  /**
   * @param bytesMax unread bytes in total; one address may cause a quarter @param trustProxy addresses of reverse
   * proxies
   */
  constructor(
    private readonly bytesMax: number,
    private readonly trustProxy: BlockList | null,
  ) {}

  watch(socket: Socket): void {
    const write: (...args: never[]) => boolean = socket.write.bind(socket);
    socket.write = (...args: never[]) => {
      const isTaken = write(...args);
      if (socket.writableLength >= COUNTED_BYTES_MIN) this.bound(socket);
      return isTaken;
    };
  }

  /** Records the client address: a proxy sends requests of many clients over one connection. */
  address(request: IncomingMessage): void {
    const { trustProxy } = this;
    if (trustProxy) (request.socket as AddressedSocket)[ADDRESS] = clientAddress(request, trustProxy);
  }

  /**
   * Admits a request. Above 16 requests of a connection without a response, the connection is closed after the last admitted response,
   * and no longer read.
   *
   * @returns false for a request that must not be executed
   */
  admit({ socket }: IncomingMessage, response: ServerResponse): boolean {
    // Only a response that is held back has no socket.
    if (response.socket) return true;
    if (this.full.has(socket)) return false;
    const heldBack = (this.heldBack.get(socket) ?? []).filter((other) => !other.socket && !other.writableFinished);
    const last = heldBack[UNANSWERED_MAX - 2];
    if (!last) {
      this.heldBack.set(socket, [...heldBack, response]);
      return true;
    }
    this.full.add(socket);
    last.shouldKeepAlive = false;
    // Requests that arrived in the same packet would take more memory than their bytes.
    const { parser } = socket as ParsedSocket;
    if (parser) parser.onIncoming = () => READ_NO_FURTHER;
    // Reading the bodies of admitted requests resumes the socket.
    const readNoFurther = () => socket.pause();
    socket.on('resume', readNoFurther).pause();
    socket.destroySoon = () => {
      socket.off('resume', readNoFurther).removeAllListeners('data');
      halfClose(socket);
    };
    // The head of that response might already be written, without `Connection: close`: then Node does not call it.
    last.once('finish', () => socket.destroySoon());
    return false;
  }

  private bound(socket: AddressedSocket): void {
    const { bytesMax, trustProxy } = this;
    if (!this.behind.has(socket)) {
      const address = socket[ADDRESS] ?? plainAddress(socket.remoteAddress ?? '');
      this.behind.set(socket, isTrusted(address, trustProxy) ? null : peerOf(address));
      const forget = () => {
        socket.off('drain', forget).off('close', forget);
        this.behind.delete(socket);
      };
      socket.on('drain', forget).on('close', forget);
    }
    if (this.behind.size === 1) return;
    const peer = this.behind.get(socket);
    this.dropSlowest([...this.behind.keys()], bytesMax);
    if (peer)
      this.dropSlowest(
        [...this.behind.keys()].filter((socket) => this.behind.get(socket) === peer),
        bytesMax / 4,
      );
  }

  /** Closes the slowest connections, until the others hold at most `bytesMax`. The last one can hold more. */
  private dropSlowest(sockets: Socket[], bytesMax: number): void {
    let bytes = sockets.reduce((sum, socket) => sum + socket.writableLength, 0);
    for (const socket of sockets.slice(0, -1)) {
      if (bytes <= bytesMax) return;
      bytes -= socket.writableLength;
      this.behind.delete(socket);
      socket.destroy();
    }
  }
}
