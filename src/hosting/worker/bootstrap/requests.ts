import { INVOCATION_HEADER, RPC_METHOD_HEADER, SCAN_HEADER, SESSION_HEADER } from '../../hosting.types.js';
import type { Bindings } from './user-module.js';

/** Marks requests of the wrapper to a session. Removed from external requests. */
export const SEND_HEADER = 'x-slipway-session-send';

export const CONFIG_HEADER = 'x-slipway-session-config';

const OURS = [INVOCATION_HEADER, RPC_METHOD_HEADER, SCAN_HEADER, SESSION_HEADER, SEND_HEADER, CONFIG_HEADER];

interface RpcErrorExtra {
  data?: unknown;
  headers?: Record<string, string>;
}

/** Drops internal headers and `cf`, which contains the process id of this service. */
export function clean(request: Request): Request {
  const headers = new Headers(request.headers);
  for (const name of OURS) headers.delete(name);
  return withHeaders(request, headers);
}

export function withHeaders(request: Request, headers: Headers): Request {
  return new Request(request.url, {
    method: request.method,
    headers,
    body: request.body,
    redirect: 'manual',
    signal: request.signal,
    duplex: 'half',
  });
}

export function invocationOf(request: Request): Record<string, string> {
  const id = request.headers.get(INVOCATION_HEADER);
  return id === null ? {} : { [INVOCATION_HEADER]: id };
}

export function secretsIn(env: Bindings): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

export function bearerOf(request: Request): string | undefined {
  return /^Bearer +(\S+)$/i.exec(request.headers.get('authorization') ?? '')?.[1];
}

export function rpcError(status: number, code: number, message: string, extra: RpcErrorExtra = {}): Response {
  const error = { code, message, ...(extra.data === undefined ? {} : { data: extra.data }) };
  return Response.json({ jsonrpc: '2.0', error, id: null }, { status, headers: extra.headers });
}

/** Returns the response for a session that expired, never existed or belongs to another client: the client opens a new one. */
export function unknownSession(): Response {
  return rpcError(404, -32001, 'Session not found');
}
