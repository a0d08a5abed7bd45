import { INVOCATION_HEADER, RPC_METHOD_HEADER, SESSION_HEADER } from '../../hosting.types.js';
import type { Bindings } from './worker-bindings.js';

/** Marks what the wrapper itself asks of a session. Taken off everything that comes from outside. */
export const SEND_HEADER = 'x-slipway-session-send';

/** Carries the caller's checked configuration to the session it opens. */
export const CONFIG_HEADER = 'x-slipway-session-config';

const OURS = [INVOCATION_HEADER, RPC_METHOD_HEADER, SESSION_HEADER, SEND_HEADER, CONFIG_HEADER];

/**
 * The request as the code may see it: without our headers, and without `cf`, in which workerd tells the process id of this
 * service.
 */
export function clean(request: Request): Request {
  const headers = new Headers(request.headers);
  for (const name of OURS) headers.delete(name);
  return renewed(request, headers);
}

/** The same request with other headers. */
export function renewed(request: Request, headers: Headers): Request {
  return new Request(request.url, {
    method: request.method,
    headers,
    body: request.body,
    redirect: 'manual',
    signal: request.signal,
    duplex: 'half',
  });
}

/** The id of the invocation, as a header for what the request causes inside. */
export function invocationOf(request: Request): Record<string, string> {
  const id = request.headers.get(INVOCATION_HEADER);
  return id === null ? {} : { [INVOCATION_HEADER]: id };
}

/** The program's secrets: bindings that are text. */
export function secretsIn(env: Bindings): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

/** The bearer token of a request; undefined without one. */
export function bearerOf(request: Request): string | undefined {
  return /^Bearer +(\S+)$/i.exec(request.headers.get('authorization') ?? '')?.[1];
}
