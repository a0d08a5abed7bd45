import type { IncomingHttpHeaders } from 'node:http';
import { hopByHopOf } from '../../platform/http/hop-by-hop.js';

type Headers = Record<string, string | string[]>;

/** What processes of this service tell each other. */
const INTERNAL_PREFIX = 'x-slipway-';

/** What of these headers goes on: neither those of one connection, nor ours. */
export function endToEnd(headers: IncomingHttpHeaders | Headers): Headers {
  const isHopByHop = hopByHopOf(headers.connection);
  const kept: Headers = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && !isHopByHop(name) && !name.startsWith(INTERNAL_PREFIX)) kept[name] = value;
  }
  return kept;
}
