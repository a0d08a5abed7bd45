import type { IncomingHttpHeaders } from 'node:http';

type Headers = Record<string, string | string[]>;

/** They speak of one connection and end with it (RFC 9110 section 7.6.1), or make undici refuse the request. */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
]);

/** What processes of this service tell each other. */
const INTERNAL_PREFIX = 'x-slipway-';

/** What of these headers goes on: neither those of one connection, which `Connection` may name more of, nor ours. */
export function endToEnd(headers: IncomingHttpHeaders | Headers): Headers {
  const named = namesIn(headers.connection);
  const kept: Headers = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || HOP_BY_HOP.has(name) || named?.has(name) || name.startsWith(INTERNAL_PREFIX)) continue;
    kept[name] = value;
  }
  return kept;
}

/** Most requests name nothing there; then no set is made. */
function namesIn(connection: string | string[] | undefined): Set<string> | undefined {
  if (connection === undefined) return undefined;
  return new Set(
    String(connection)
      .split(',')
      .map((name) => name.trim().toLowerCase()),
  );
}
