import type { IncomingHttpHeaders } from 'node:http';
import { hopByHopOf } from '../../platform/http/hop-by-hop.js';
import { SESSION_HEADER } from '../hosting.types.js';

type Headers = Record<string, string | string[]>;

/** Prefix of internal headers of this service. */
const INTERNAL_PREFIX = 'x-slipway-';

/** End-to-end headers: without hop-by-hop headers and internal ones, except the session name. */
export function endToEnd(headers: IncomingHttpHeaders | Headers): Headers {
  const isHopByHop = hopByHopOf(headers.connection);
  const kept: Headers = {};
  for (const [name, value] of Object.entries(headers)) {
    const isInternal = name.startsWith(INTERNAL_PREFIX) && name !== SESSION_HEADER;
    if (value !== undefined && !isHopByHop(name) && !isInternal) kept[name] = value;
  }
  return kept;
}
