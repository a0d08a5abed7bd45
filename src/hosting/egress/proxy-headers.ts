import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { hopByHopOf } from '../../platform/http/hop-by-hop.js';

/** Headers by lower-case name. */
export type Headers = Record<string, string | string[]>;

/** What goes on of a request: all but what speaks of this hop. `host` is set from the URL by whoever sends it. */
export function requestHeaders({ headersDistinct, headers }: IncomingMessage, dropped: string[] = []): Headers {
  const kept = noHeaders();
  const isHopByHop = hopByHopOf(headers.connection);
  for (const [name, values = []] of Object.entries(headersDistinct)) {
    if (name === 'host' || isHopByHop(name) || dropped.includes(name)) continue;
    kept[name] = values.length === 1 ? (values[0] ?? '') : values;
  }
  return kept;
}

/** What goes back of an answer. `encode` turns its text into one character a byte, which is how headers are written. */
export function answerHeaders(headers: IncomingHttpHeaders, encode: (value: string) => string): Headers {
  const kept = noHeaders();
  const isHopByHop = hopByHopOf(headers.connection);
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || isHopByHop(name)) continue;
    kept[name] = Array.isArray(value) ? value.map(encode) : encode(value);
  }
  return kept;
}

/** Without a prototype: `__proto__` is a header like any other. */
function noHeaders(): Headers {
  return Object.create(null) as Headers;
}
