import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { Dispatcher } from 'undici';
import type { Egress } from '../../platform/egress/egress.js';
import { OutboundError } from './outbound.errors.js';
import { answerHeaders, requestHeaders } from './proxy-headers.js';
import type { ProxyLimits } from './proxy-limits.js';

/**
 * Forwards one request and its answer as streams with back-pressure in both directions. Closes the far socket when the
 * program disconnects. Drops trailers and interim answers (1xx). Resolves after the answer, or when the program has
 * disconnected.
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
  const end = (error: OutboundError | null): void => {
    late ??= error;
    ended.emit('abort');
  };
  const timer = setTimeout(() => end(tooLate(url, totalMs)), totalMs);
  res.setTimeout(idleMs, () => end(tooLate(url, idleMs)));
  res.once('close', () => end(null));
  try {
    const answer = await egress.request(url, {
      ...outgoing(req),
      signal: ended,
      isSocketClosed: egress.openSockets >= atOnceMax,
    });
    answer.body.on('error', () => undefined);
    await passOn(answer, res);
  } catch (error) {
    if (!res.destroyed) throw late ?? error;
  } finally {
    clearTimeout(timer);
  }
}

async function passOn({ statusCode, headers, body }: Dispatcher.ResponseData, res: ServerResponse): Promise<void> {
  try {
    res.writeHead(statusCode, answerHeaders(headers, bytesOf)).flushHeaders();
    await pipeline(body, res);
  } finally {
    body.destroy();
  }
}

/**
 * Body of the outgoing request: a request without one has `Content-Length: 0` or neither header; one with a body has
 * its length or is chunked.
 */
function outgoing(req: IncomingMessage): Pick<Dispatcher.RequestOptions, 'body'> & {
  method: Dispatcher.HttpMethod;
  headers: Record<string, string | string[]>;
} {
  const length = req.headers['content-length'];
  const hasBody = req.headers['transfer-encoding'] !== undefined || Number(length ?? 0) > 0;
  const headers = requestHeaders(req, hasBody ? [] : ['content-length']);
  return { method: req.method as Dispatcher.HttpMethod, headers, body: hasBody ? req : null };
}

/** Header values parsed as UTF-8, converted to one character per byte for writing. */
function bytesOf(value: string): string {
  return Buffer.from(value, 'utf8').toString('latin1');
}

function tooLate({ hostname }: URL, afterMs: number): OutboundError {
  return new OutboundError(504, `The request to "${hostname}" did not end within ${afterMs} ms: try again later.`);
}
