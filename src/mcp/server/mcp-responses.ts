import { randomUUID } from 'node:crypto';
import type { McpReply, RpcError } from '../protocol/channel.js';
import { spliceAll } from '../protocol/json-edit.js';
import { slice, splice } from '../protocol/json-text.js';
import { type CallFailure, failureOf } from '../protocol/failures.js';
import { UpstreamAuthRequiredError } from '../protocol/mcp-errors.js';
import { rpcCode, type Era, LEGACY_VERSIONS, type UpstreamIdentity } from '../protocol/protocol.js';
import { TASKS_EXTENSION } from '../protocol/session.js';
import { offersTasks } from '../client/legacy-tasks.js';
import type { McpRequest } from './mcp-request.js';
import { isObject } from '../../platform/text/json.js';
import { serverMeta } from './bridge/hop.js';
import { inputOfSetup, mayRequireInput, setupError } from './bridge/input.js';
import { SERVED_VERSIONS } from './classify.js';

export function resultText(id: string, result: string): string {
  return `{"jsonrpc":"2.0","id":${id},"result":${result}}`;
}

export function errorText(id: string, code: number, message: string, data?: unknown): string {
  return `{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify({ code, message, ...(data === undefined ? {} : { data }) })}}`;
}

/** Returns the {@link errorText} of an {@link RpcError}. */
export function rpcErrorText(id: string, { code, message, data }: RpcError): string {
  return errorText(id, code, message, data);
}

export function replyError(
  { id, sink }: Pick<McpRequest, 'id' | 'sink'>,
  code: number,
  message: string,
  status = 200,
  data?: unknown,
): void {
  sink.reply(status, errorText(id, code, message, data));
}

/** Replies with a failure. A tool call gets a result, which reaches the model; other requests get an error. */
export function replyFailure({ method, id, sink }: McpRequest, message: string, era: Era): void {
  sink.reply(
    200,
    method === 'tools/call' ? toolFailureText(id, message, era) : errorText(id, rpcCode.internalError, message),
  );
}

/** Returns a failed tool result, with the `resultType` that modern clients require. */
export function toolFailureText(id: string, message: string, era: Era): string {
  const type = era === 'modern' ? { resultType: 'complete' } : {};
  return resultText(id, JSON.stringify({ ...type, content: [{ type: 'text', text: message }], isError: true }));
}

/** Replaces the id, including a missing one of an error. The rest of the message stays the same, byte for byte. */
export function withId({ text, id: replyId, error }: McpReply, id: string): string {
  if (replyId) return splice(text, replyId, id);
  return error ? rpcErrorText(id, error) : text;
}

export function withOwnError(reply: McpReply, id: string, error: RpcError | null): string {
  return error ? rpcErrorText(id, error) : withId(reply, id);
}

/** Rewrites the result of a reply, which `rewrite` receives as JSON text. */
export function withResult(reply: McpReply, id: string, rewrite: (result: string) => string): string {
  if (!reply.result || !reply.id) return withId(reply, id);
  const result = slice(reply.text, reply.result);
  return spliceAll(reply.text, [
    [reply.id, id],
    [reply.result, rewrite(result)],
  ]);
}

/** Error codes about the hop between Slipway and the upstream, unrelated to the client's request. */
const hopErrors: ReadonlySet<number> = new Set([
  rpcCode.headerMismatch,
  rpcCode.missingCapability,
  rpcCode.unsupportedVersion,
]);

/** Returns the replacement for an upstream error that concerns only this hop; null for other errors. */
export function hopError({ code, message }: RpcError): RpcError | null {
  if (!hopErrors.has(code)) return null;
  const data = { upstream: { code, message } };
  return {
    code: rpcCode.internalError,
    message: 'The MCP server refused the protocol version, headers or capabilities of the request',
    data,
  };
}

/**
 * Returns the message of a failure. It never uses HTTP 401 or 404: a client would refresh a valid key, or open sessions in a loop. For tool calls, required
 * authorization is reported as a tool result, which reaches the model and its user.
 */
export function failureText(id: string, method: string, error: unknown, era: Era): string {
  if (error instanceof UpstreamAuthRequiredError && method === 'tools/call') {
    return toolFailureText(id, setupSentence(error), era);
  }
  const row = failureOf(error);
  if (row.rpc === null) throw error;
  const { message, data } = error as CallFailure;
  return errorText(id, row.rpc, row.outcome === 'canceled' ? 'The call was cancelled' : message, data);
}

/**
 * Returns the {@link failureText} for a client that sends its user to web pages: required authorization is the URL elicitation of
 * its revision, an `input_required` result of MCP 2026-07-28 or error -32042 of 2025-11-25. Methods of 2026-07-28 that
 * require no input have -33001. Every link opens only for users signed in as the calling account.
 */
export async function elicitingFailureText(id: string, method: string, error: unknown, era: Era): Promise<string> {
  if (!(error instanceof UpstreamAuthRequiredError)) return failureText(id, method, error, era);
  const bound = await error.forPerson();
  const { setupUrl } = bound;
  if (setupUrl === undefined || (era === 'modern' && !mayRequireInput.has(method))) {
    return failureText(id, method, bound, era);
  }
  return era === 'modern'
    ? resultText(id, inputOfSetup(setupUrl))
    : rpcErrorText(id, setupError(setupSentence(bound), setupUrl, randomUUID()));
}

export function setupSentence({ message, setupUrl }: UpstreamAuthRequiredError): string {
  return setupUrl === undefined || message.includes(setupUrl) ? message : `${message} Open ${setupUrl} to do so.`;
}

/** Returns the client's revision if it is supported, otherwise the newest. */
export function agreedVersion(params: unknown): string {
  const requested = isObject(params) ? params.protocolVersion : undefined;
  return LEGACY_VERSIONS.find((version) => version === requested) ?? LEGACY_VERSIONS[0];
}

/** Returns the result of `initialize`, without tasks and changes that are not forwarded. */
export function initializeResult(identity: UpstreamIdentity, protocolVersion: string): string {
  const { capabilities, serverInfo, instructions } = identity;
  const relayed = protocolVersion === LEGACY_VERSIONS[0] && identity.era === 'legacy' && offersTasks(identity);
  const cancel = isObject(capabilities.tasks) && capabilities.tasks.cancel !== undefined ? { cancel: {} } : {};
  // Tasks that a client can start and follow: Slipway keeps its own list.
  const tasks = { list: {}, ...cancel, requests: { tools: { call: {} } } };
  const offered = { ...legacyCapabilities(identity), ...(relayed && { tasks }) };
  return JSON.stringify({ protocolVersion, capabilities: offered, serverInfo, instructions });
}

/**
 * Returns the result of `server/discover`. Tasks of 2025-11-25 do not exist in this revision. The log level of a legacy upstream applies to its whole session,
 * which callers share, so logging is not offered.
 */
export function discoverResult({ era, capabilities, serverInfo, instructions }: UpstreamIdentity): string {
  const { tasks: _tasks, logging, ...passed } = capabilities;
  const result = JSON.stringify({
    resultType: 'complete',
    ttlMs: 0,
    cacheScope: 'private',
    supportedVersions: SERVED_VERSIONS,
    capabilities: { ...passed, ...(era === 'modern' && logging !== undefined ? { logging } : {}) },
    instructions,
  });
  return `${result.slice(0, -1)},"_meta":${serverMeta(serverInfo)}}`;
}

/**
 * Leaves out tasks, which have their own form here, and change notifications if the upstream has no stream for them.
 */
function legacyCapabilities({ capabilities, hasNoStream }: UpstreamIdentity): Record<string, unknown> {
  const { tasks: _tasks, extensions, ...offered } = capabilities;
  const strip = (value: unknown) => {
    if (!hasNoStream || !isObject(value)) return value;
    const { listChanged: _changes, subscribe: _updates, ...rest } = value;
    return rest;
  };
  const pairs = Object.entries(offered).map(([name, value]) => [name, name === 'experimental' ? value : strip(value)]);
  if (!isObject(extensions)) return Object.fromEntries(pairs) as Record<string, unknown>;
  const { [TASKS_EXTENSION]: _extension, ...passed } = extensions;
  return { ...(Object.fromEntries(pairs) as Record<string, unknown>), extensions: passed };
}
