import { DomainError } from '../../platform/errors/domain-error.js';
import type { McpReply, RpcError } from '../protocol/channel.js';
import { spliceAll } from '../protocol/json-edit.js';
import { slice, splice } from '../protocol/json-text.js';
import { CallerLeftError, UpstreamAuthRequiredError, UpstreamTimeoutError } from '../protocol/mcp-errors.js';
import { rpcCode, type Era } from '../protocol/protocol.js';
import { McpRefusal } from './mcp-server.errors.js';

/** A JSON-RPC result; `id` and `result` are JSON text. */
export function resultText(id: string, result: string): string {
  return `{"jsonrpc":"2.0","id":${id},"result":${result}}`;
}

/** A JSON-RPC error; `id` is JSON text. */
export function errorText(id: string, code: number, message: string, data?: unknown): string {
  return `{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify({ code, message, ...(data === undefined ? {} : { data }) })}}`;
}

/** {@link errorText} of an error that stands together. */
export function rpcErrorText(id: string, { code, message, data }: RpcError): string {
  return errorText(id, code, message, data);
}

/** A tool's result that says what went wrong, to the model and its user. A modern client demands its type. */
export function toolFailure(id: string, message: string, era: Era): string {
  const type = era === 'modern' ? { resultType: 'complete' } : {};
  return resultText(id, JSON.stringify({ ...type, content: [{ type: 'text', text: message }], isError: true }));
}

/** The upstream's message under the client's id, byte for byte otherwise. An error without an id gets it too. */
export function withId({ text, id: theirs, error }: McpReply, id: string): string {
  if (theirs) return splice(text, theirs, id);
  return error ? rpcErrorText(id, error) : text;
}

/** The upstream's message under the client's id and with another result; `rewrite` gets the result as JSON text. */
export function withResult(reply: McpReply, id: string, rewrite: (result: string) => string): string {
  if (!reply.result || !reply.id) return withId(reply, id);
  const result = slice(reply.text, reply.result);
  return spliceAll(reply.text, [
    [reply.id, id],
    [reply.result, rewrite(result)],
  ]);
}

/** Errors about the hop between us and the upstream, which say nothing about the client's request. */
const hopErrors: ReadonlySet<number> = new Set([
  rpcCode.headerMismatch,
  rpcCode.missingCapability,
  rpcCode.unsupportedVersion,
]);

/** What a client hears instead of an error that is about our hop to the upstream; null for other errors. */
export function hopError({ code, message }: RpcError): RpcError | null {
  if (!hopErrors.has(code)) return null;
  const data = { upstream: { code, message } };
  return { code: rpcCode.internalError, message: 'The MCP server did not accept how it was asked', data };
}

/**
 * A failure of the upstream as the client hears it. Never our 401 or 404: a client would refresh a healthy key, or open
 * sessions in a loop. A tool that wants authorization says so as a tool result, which reaches the model and its user.
 */
export function failureText(id: string, method: string, error: unknown, era: Era): string {
  if (error instanceof McpRefusal) return errorText(id, error.rpcCode, error.message, error.data);
  if (error instanceof UpstreamAuthRequiredError) {
    const { setupUrl } = error;
    if (method === 'tools/call') return toolFailure(id, setupSentence(error), era);
    return errorText(id, rpcCode.authRequired, error.message, setupUrl === undefined ? undefined : { setupUrl });
  }
  if (error instanceof CallerLeftError) return errorText(id, rpcCode.cancelled, 'The call was cancelled');
  if (error instanceof UpstreamTimeoutError) return errorText(id, rpcCode.timeout, error.message);
  if (error instanceof DomainError) return errorText(id, rpcCode.upstreamError, error.message);
  throw error;
}

/** What a person must do before an upstream lets them in. */
export function setupSentence({ message, setupUrl }: UpstreamAuthRequiredError): string {
  return setupUrl === undefined || message.includes(setupUrl) ? message : `${message} Open ${setupUrl} to do so.`;
}
