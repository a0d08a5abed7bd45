/** Answers of the wrapper itself, as JSON-RPC errors. */
export function rpcError(status: number, code: number, message: string, extra: RpcErrorExtra = {}): Response {
  const error = { code, message, ...(extra.data === undefined ? {} : { data: extra.data }) };
  return Response.json({ jsonrpc: '2.0', error, id: null }, { status, headers: extra.headers });
}

interface RpcErrorExtra {
  data?: unknown;
  headers?: Record<string, string>;
}

/** The session ended, was never there, or belongs to somebody else: its client starts a new one. */
export function unknownSession(): Response {
  return rpcError(404, -32001, 'Session not found');
}
