import { UpstreamError } from '../mcp-errors.js';
import { resultOf, withEnvelope } from '../messages.js';
import { MODERN_VERSION, rpcCode, type ServerHello } from '../protocol.js';
import { helloOfDiscover, helloOfInitialize, initializeParams } from '../session.js';
import type { HttpTarget, HttpWire } from './http-wire.js';

/** What a handshake led to. */
export interface HttpSession {
  hello: ServerHello;
  /** Null when the upstream keeps no session. */
  id: string | null;
  /** Sent with every request of this session. */
  headers: Record<string, string>;
}

/** Refusals of `initialize` behind which a modern server may stand. */
const modernHints: ReadonlySet<number> = new Set([
  rpcCode.unsupportedVersion,
  rpcCode.methodNotFound,
  rpcCode.headerMismatch,
]);

/**
 * Opens a session: `initialize` and its notification, which some servers insist on before anything else, or
 * `server/discover` when the server refuses the former as a modern one does.
 *
 * @throws UpstreamFailure
 */
export async function openSession(wire: HttpWire): Promise<HttpSession> {
  const { url, headers: own, connectTimeoutMs: timeoutMs } = wire.target;
  const base = { ...own, 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const { reply, headers } = await wire.ask({
    method: 'initialize',
    era: 'legacy',
    params: initializeParams,
    headers: base,
    timeoutMs,
  });
  if (reply.error) {
    if (modernHints.has(reply.error.code)) return discover(wire, base, reply.error.message);
    throw refusal(wire.target, reply.error.message);
  }
  const hello = helloOfInitialize(resultOf(reply), url);
  const id = typeof headers['mcp-session-id'] === 'string' ? headers['mcp-session-id'] : null;
  const session = {
    hello,
    id,
    headers: {
      ...base,
      'mcp-protocol-version': hello.protocolVersion,
      ...(id === null ? {} : { 'mcp-session-id': id }),
    },
  };
  try {
    await wire.tell(session.headers, 'notifications/initialized', timeoutMs);
  } catch (error) {
    if (id !== null) void wire.endSession(session.headers);
    throw error;
  }
  return session;
}

async function discover(wire: HttpWire, base: Record<string, string>, refused: string): Promise<HttpSession> {
  const { url, connectTimeoutMs: timeoutMs } = wire.target;
  const headers = { ...base, 'mcp-protocol-version': MODERN_VERSION };
  const { reply } = await wire.ask({
    method: 'server/discover',
    era: 'modern',
    params: withEnvelope(undefined, MODERN_VERSION),
    headers: { ...headers, 'mcp-method': 'server/discover' },
    timeoutMs,
  });
  if (reply.error) throw refusal(wire.target, refused);
  return { hello: helloOfDiscover(resultOf(reply), url), id: null, headers };
}

/** Servers like to repeat the credential they refuse, but this message is stored and shown. */
function refusal({ url, headers }: HttpTarget, words: string): UpstreamError {
  const secrets = Object.values(headers).flatMap((value) => [value, value.slice(value.indexOf(' ') + 1)]);
  const message = secrets.reduce((text, secret) => text.replaceAll(secret, '…'), words);
  return new UpstreamError(`${url.host} refused to open an MCP session: ${message.slice(0, 200)}`);
}
