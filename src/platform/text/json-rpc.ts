import { isObject } from './json.js';

/**
 * Returns true for a message of JSON-RPC, with or without its version. Other JSON is log output, such as
 * `{"level":"error","error":"disk full"}`.
 */
export function isMessage(head: Record<string, unknown>): boolean {
  const { jsonrpc, id, method, result, error } = head;
  if (jsonrpc !== undefined)
    return typeof method === 'string' || ['id', 'result', 'error'].some((name) => name in head);
  if (typeof method === 'string') return /^(?:ping$|[a-z]+\/)/.test(method);
  return id !== undefined && id !== null && (isObject(result) || isObject(error));
}
