import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

/** Headers by lower-case name. */
export type Headers = Record<string, string | string[]>;

/** They speak of one connection, not of the message (RFC 9110, 7.6.1), or to a proxy. */
const HOP_BY_HOP = new Set([
  ...['connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'proxy-connection', 'te', 'trailer'],
  ...['transfer-encoding', 'upgrade', 'expect'],
]);

/** What goes on of a request: all but what speaks of this hop. `host` is set from the URL by whoever sends it. */
export function requestHeaders({ headersDistinct, headers }: IncomingMessage, dropped: string[] = []): Headers {
  const kept = noHeaders();
  const named = namedByConnection(headers.connection);
  for (const [name, values = []] of Object.entries(headersDistinct)) {
    if (name === 'host' || HOP_BY_HOP.has(name) || named.has(name) || dropped.includes(name)) continue;
    kept[name] = values.length === 1 ? (values[0] ?? '') : values;
  }
  return kept;
}

/** What goes back of an answer. `encode` turns its text into one character a byte, which is how headers are written. */
export function answerHeaders(headers: IncomingHttpHeaders, encode: (value: string) => string): Headers {
  const kept = noHeaders();
  const named = namedByConnection(headers.connection);
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || HOP_BY_HOP.has(name) || named.has(name)) continue;
    kept[name] = Array.isArray(value) ? value.map(encode) : encode(value);
  }
  return kept;
}

function namedByConnection(connection: string | string[] | undefined): Set<string> {
  return new Set(
    String(connection ?? '')
      .split(',')
      .map((name) => name.trim().toLowerCase()),
  );
}

/** Without a prototype: `__proto__` is a header like any other. */
function noHeaders(): Headers {
  return Object.create(null) as Headers;
}
