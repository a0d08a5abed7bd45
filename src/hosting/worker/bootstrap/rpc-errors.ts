/** Error of the wrapper as a JSON-RPC response. */
export function rpcError(status: number, code: number, message: string, extra: RpcErrorExtra = {}): Response {
  const error = { code, message, ...(extra.data === undefined ? {} : { data: extra.data }) };
  return Response.json({ jsonrpc: '2.0', error, id: null }, { status, headers: extra.headers });
}

interface RpcErrorExtra {
  data?: unknown;
  headers?: Record<string, string>;
}

/** The session has ended, never existed, or belongs to another client, which then opens a new one. */
export function unknownSession(): Response {
  return rpcError(404, -32001, 'Session not found');
}
