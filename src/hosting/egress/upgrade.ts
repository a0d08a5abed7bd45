import { request, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { OutboundError } from './outbound.errors.js';
import { answerHeaders, requestHeaders } from './proxy-headers.js';
import type { ProxyLimits } from './proxy-limits.js';

/** A protocol upgrade request and its target. */
export interface Upgrade {
  url: URL;
  req: IncomingMessage;
  /** Response to `near`, used unless the upgrade succeeds. */
  res: ServerResponse;
  near: Socket;
  /** Open socket, used by this upgrade only. */
  far: Socket;
}

/** @throws OutboundError (400) for anything but a WebSocket */
export function requireWebSocket({ headers }: IncomingMessage): void {
  if (headers.upgrade?.toLowerCase() === 'websocket') return;
  throw new OutboundError(400, 'Only WebSockets can be upgraded to: send the request without "Upgrade".');
}

/**
 * Forwards a WebSocket handshake and its answer. True when the far side accepted: both sockets then carry frames. False
 * when it answered otherwise, which ends both.
 *
 * @throws the error of the far socket; OutboundError (504) without an answer for `idleMs`. The far socket is closed
 * then
 */
export async function upgradeOut(upgrade: Upgrade, limits: ProxyLimits): Promise<boolean> {
  const { res, near, far } = upgrade;
  try {
    const answer = await handshake(upgrade, limits);
    if (answer.statusCode === 101) {
      near.write(switchLines(answer), 'latin1');
      return true;
    }
    res.writeHead(answer.statusCode ?? 502, answerHeaders(answer.headers, asIs));
    await pipeline(answer, res);
    far.destroy();
    return false;
  } catch (error) {
    far.destroy();
    throw error;
  }
}

function handshake({ url, req, near, far }: Upgrade, { idleMs, headerBytes }: ProxyLimits): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const leave = (): void => void far.destroy();
    if (near.destroyed) leave();
    near.once('close', leave);
    far.setTimeout(idleMs, () => far.destroy(new OutboundError(504, `The host "${url.hostname}" does not answer.`)));
    const sent = request({
      method: 'GET',
      path: url.pathname + url.search,
      headers: {
        ...requestHeaders(req, ['content-length']),
        host: url.host,
        connection: 'Upgrade',
        upgrade: 'websocket',
      },
      createConnection: () => far,
      setHost: false,
      maxHeaderSize: headerBytes,
      insecureHTTPParser: false,
    });
    sent.on('error', reject);
    sent.once('close', () => reject(new OutboundError(502, `The host "${url.hostname}" hung up.`)));
    sent.once('response', resolve);
    sent.once('upgrade', (answer, _far, head: Buffer) => {
      near.off('close', leave);
      if (head.length > 0) far.unshift(head);
      resolve(answer);
    });
    sent.end();
  });
}

/** Head of the 101 answer. */
function switchLines({ headers }: IncomingMessage): string {
  const lines = Object.entries(answerHeaders(headers, asIs)).flatMap(([name, values]) =>
    [values].flat().map((value) => `${name}: ${value}\r\n`),
  );
  return `HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n${lines.join('')}\r\n`;
}

/** Latin-1 value as read by Node's parser, one character per byte. */
function asIs(value: string): string {
  return value;
}
