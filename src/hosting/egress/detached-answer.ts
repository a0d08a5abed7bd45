import { ServerResponse, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/** An answer on a socket that the server has let go of, which closes after it. */
export function detached(req: IncomingMessage, socket: Socket): ServerResponse {
  const res = new ServerResponse(req);
  res.shouldKeepAlive = false;
  res.on('error', () => undefined);
  res.on('finish', () => socket.destroySoon());
  res.assignSocket(socket);
  return res;
}
