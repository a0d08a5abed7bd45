import { EventEmitter } from 'node:events';
import { request, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import type { Dispatcher } from 'undici';
import type { Egress } from '../../platform/egress/egress.js';
import { hopByHopOf } from '../../platform/http/hop-by-hop.js';
import { OutboundError } from './outbound.errors.js';
import type { ProxyLimits } from './proxy-limits.js';

type Headers = Record<string, string | string[]>;

export interface Upgrade {
  url: URL;
  req: IncomingMessage;
  /** Response to `near`, used unless the upgrade succeeds. */
  res: ServerResponse;
  near: Socket;
  /** Used by this upgrade only. */
  far: Socket;
}

/**
 * Streams the request and its response with back-pressure in both directions. Closes the far socket when the program
 * disconnects. Drops trailers and interim responses (1xx).
 *
 * @throws errors of the egress policy; OutboundError (504) after `idleMs` without a byte
 */
export async function sendOut(
  url: URL,
  req: IncomingMessage,
  res: ServerResponse,
  egress: Egress,
  { idleMs, totalMs, atOnceMax }: ProxyLimits,
): Promise<void> {
  if (res.destroyed) return;
  const ended = new EventEmitter();
  let late: OutboundError | null = null;
  const abort = (error: OutboundError | null): void => {
    late ??= error;
    ended.emit('abort');
  };
  const timer = setTimeout(() => abort(tooLate(url, totalMs)), totalMs);
  res.setTimeout(idleMs, () => abort(tooLate(url, idleMs)));
  res.once('close', () => abort(null));
  try {
    const answer = await egress.request(url, {
      ...outgoing(req),
      signal: ended,
      isForwarded: true,
      isSocketClosed: egress.openSockets >= atOnceMax,
    });
    answer.body.on('error', () => undefined);
    try {
      // Header values were parsed as UTF-8, and are written with one character per byte.
      const encode = (value: string) => Buffer.from(value, 'utf8').toString('latin1');
      res.writeHead(answer.statusCode, forwarded(answer.headers, [], encode)).flushHeaders();
      await pipeline(answer.body, res);
    } finally {
      answer.body.destroy();
    }
  } catch (error) {
    if (!res.destroyed) throw late ?? error;
  } finally {
    clearTimeout(timer);
  }
}

/** @throws OutboundError (400) for anything but a WebSocket */
export function requireWebSocket({ headers }: IncomingMessage): void {
  if (headers.upgrade?.toLowerCase() === 'websocket') return;
  throw new OutboundError(400, 'Only WebSockets can be upgraded to: send the request without "Upgrade".');
}

/**
 * Returns true when the far side accepted: both sockets then carry frames. False for any other response, which closes both.
 *
 * @throws the error of the far socket; OutboundError (504) without a response for `idleMs`. The far socket is closed
 * then
 */
export async function upgradeOut(upgrade: Upgrade, limits: ProxyLimits): Promise<boolean> {
  const { res, near, far } = upgrade;
  try {
    const answer = await handshake(upgrade, limits);
    if (answer.statusCode === 101) {
      const lines = Object.entries(forwarded(answer.headers)).flatMap(([name, values]) =>
        [values].flat().map((value) => `${name}: ${value}\r\n`),
      );
      const head = 'HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n';
      near.write(`${head}${lines.join('')}\r\n`, 'latin1');
      return true;
    }
    res.writeHead(answer.statusCode ?? 502, forwarded(answer.headers));
    await pipeline(answer, res);
    far.destroy();
    return false;
  } catch (error) {
    far.destroy();
    throw error;
  }
}

/**
 * Returns the body of the outgoing request: a request without one has `Content-Length: 0` or neither header; one with a body has
 * its length or is chunked.
 */
function outgoing(
  req: IncomingMessage,
): Pick<Dispatcher.RequestOptions, 'body'> & {
  method: Dispatcher.HttpMethod;
  headers: Record<string, string | string[]>;
} {
  const length = req.headers['content-length'];
  const hasBody = req.headers['transfer-encoding'] !== undefined || Number(length ?? 0) > 0;
  // `host` is set from the URL by the sender.
  const headers = forwarded(req.headersDistinct, hasBody ? ['host'] : ['host', 'content-length']);
  return { method: req.method as Dispatcher.HttpMethod, headers, body: hasBody ? req : null };
}

function handshake({ url, req, near, far }: Upgrade, { idleMs, headerBytes }: ProxyLimits): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const closeFar = (): void => void far.destroy();
    if (near.destroyed) closeFar();
    near.once('close', closeFar);
    far.setTimeout(idleMs, () => far.destroy(new OutboundError(504, `The host "${url.hostname}" does not answer.`)));
    const sent = request({
      method: 'GET',
      path: url.pathname + url.search,
      headers: {
        ...forwarded(req.headersDistinct, ['host', 'content-length']),
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
      near.off('close', closeFar);
      if (head.length > 0) far.unshift(head);
      resolve(answer);
    });
    sent.end();
  });
}

/**
 * Returns forwarded headers without a prototype: `__proto__` is an ordinary header name.
 *
 * @param encode converts values to one character per byte, as headers are written
 */
function forwarded(
  headers: NodeJS.Dict<string | string[]>,
  dropped: string[] = [],
  encode = (value: string) => value,
): Headers {
  const result = Object.create(null) as Headers;
  const isHopByHop = hopByHopOf(headers.connection);
  for (const [name, value = []] of Object.entries(headers)) {
    const values = [value].flat().map(encode);
    if (values.length === 0 || isHopByHop(name) || dropped.includes(name)) continue;
    result[name] = values.length === 1 ? values[0] : values;
  }
  return result;
}

function tooLate({ hostname }: URL, afterMs: number): OutboundError {
  return new OutboundError(504, `The request to "${hostname}" did not end within ${afterMs} ms: try again later.`);
}
