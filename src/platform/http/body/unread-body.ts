import { ServerResponse, type IncomingMessage } from 'node:http';
import { Socket } from 'node:net';

/** Bytes of input that are discarded after the last response of a connection, and the time before it is closed. */
const DISCARDED_BYTES_MAX = 64 * 1024;
const DISCARD_MS_MAX = 1_000;

/** Returns true if the headers of a request announce a body. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/**
 * Closes the connection after a response that is sent before the request's body has arrived whole: the rest of the body
 * must not be read as the next request, and is not awaited. Called before anything is written.
 */
export function closeIfUnread(request: IncomingMessage, response: ServerResponse): void {
  // On the instance, since Express replaces the prototype.
  if (hasBody(request)) response.writeHead = writeHead;
}

function writeHead(this: ServerResponse, ...args: never[]): ServerResponse {
  const { req: request } = this;
  if (!request.complete) {
    const { socket } = request;
    this.shouldKeepAlive = false;
    // The request loses its socket when the client disconnects.
    socket.destroySoon = () => close(request, socket);
  }
  return (ServerResponse.prototype.writeHead as (...args: never[]) => ServerResponse).apply(this, args);
}

function close(request: IncomingMessage, socket: Socket): void {
  if (request.complete) Socket.prototype.destroySoon.call(socket);
  else halfClose(socket);
}

/**
 * Closes a connection with unread input, which would make the kernel reset it, and a client that still sends would lose the
 * response: the connection is half-closed, at most 64 KB are discarded, and after 1 s it is closed.
 */
export function halfClose(socket: Socket): void {
  if (socket.writableEnded) return;
  let bytes = 0;
  // Listening here also detaches the socket from the HTTP parser, which reads without limit.
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > DISCARDED_BYTES_MAX) socket.pause();
  });
  const timer = setTimeout(() => socket.destroy(), DISCARD_MS_MAX);
  socket.once('close', () => clearTimeout(timer));
  socket.resume().end();
}
