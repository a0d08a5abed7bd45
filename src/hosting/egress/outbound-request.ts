import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { Dispatcher } from 'undici';
import type { Egress } from '../../platform/egress/egress.js';
import { OutboundError } from './outbound.errors.js';
import { answerHeaders, requestHeaders } from './proxy-headers.js';
import type { ProxyLimits } from './proxy-limits.js';

/**
 * Sends one request on and its answer back, both as they come: nothing is held, and a side that does not read makes the
 * other wait. When the program leaves, the far socket is closed at once. Trailers and answers before the answer (1xx) are
 * left out. Resolves when the answer is written, or nobody is there any more.
 *
 * @throws what the way out says; OutboundError (504) after `idleMs` without a byte
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

/** A request without a body says so, or nothing; one with a body says how long it is, or comes in chunks. */
function outgoing(req: IncomingMessage): Pick<Dispatcher.RequestOptions, 'body'> & {
  method: Dispatcher.HttpMethod;
  headers: Record<string, string | string[]>;
} {
  const length = req.headers['content-length'];
  const hasBody = req.headers['transfer-encoding'] !== undefined || Number(length ?? 0) > 0;
  const headers = requestHeaders(req, hasBody ? [] : ['content-length']);
  return { method: req.method as Dispatcher.HttpMethod, headers, body: hasBody ? req : null };
}

/** The parser of answers reads headers as UTF-8, and they are written one character a byte. */
function bytesOf(value: string): string {
  return Buffer.from(value, 'utf8').toString('latin1');
}

function tooLate({ hostname }: URL, afterMs: number): OutboundError {
  return new OutboundError(504, `The request to "${hostname}" did not end within ${afterMs} ms: try again later.`);
}
