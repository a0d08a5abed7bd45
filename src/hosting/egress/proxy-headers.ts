import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { hopByHopOf } from '../../platform/http/hop-by-hop.js';

/** Headers by lower-case name. */
export type Headers = Record<string, string | string[]>;

/** Headers of a request to forward, without those of this hop. `host` is set from the URL by the sender. */
export function requestHeaders({ headersDistinct, headers }: IncomingMessage, dropped: string[] = []): Headers {
  const kept = noHeaders();
  const isHopByHop = hopByHopOf(headers.connection);
  for (const [name, values = []] of Object.entries(headersDistinct)) {
    if (name === 'host' || isHopByHop(name) || dropped.includes(name)) continue;
    kept[name] = values.length === 1 ? (values[0] ?? '') : values;
  }
  return kept;
}

/** Headers of an answer to forward. `encode` converts values to one character per byte, as headers are written. */
export function answerHeaders(headers: IncomingHttpHeaders, encode: (value: string) => string): Headers {
  const kept = noHeaders();
  const isHopByHop = hopByHopOf(headers.connection);
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || isHopByHop(name)) continue;
    kept[name] = Array.isArray(value) ? value.map(encode) : encode(value);
  }
  return kept;
}

/** Without a prototype: `__proto__` is an ordinary header name. */
function noHeaders(): Headers {
  return Object.create(null) as Headers;
}
