/**
 * Era of an endpoint: `modern` (MCP 2026-07-28, no sessions), `streamable` (2025-11-25 and older, sessions that begin
 * with `initialize`) or `sse` (HTTP+SSE of 2024-11-05).
 *
 * `server/discover` goes first, since a legacy server cannot mistake it for a call. Its reply decides, or leads to
 * `initialize`, and if the response to that is not MCP, to a GET that waits for the event `endpoint`. The probe sends
 * `server/discover` again when the response names Slipway's version or reports a missing header, which proxies drop. An
 * identity or session opened meanwhile is kept for the first call.
 *
 * The probe fails without a verdict on redirects, 403, 429 and 5xx except 500 and 501, if authorization is required,
 * and without a response.
 */
import type { McpReply } from '../protocol/channel.js';
import { UpstreamAuthRequiredError, UpstreamError, UpstreamFailure } from '../protocol/mcp-errors.js';
import { resultOf, withEnvelope, unansweredRequest } from '../protocol/messages.js';
import { LEGACY_VERSIONS, MODERN_VERSION, rpcCode } from '../protocol/protocol.js';
import { identityOfDiscover, versionsOfDiscover } from '../protocol/session.js';
import { verdictOf, type EraVerdict } from '../eras/era.repository.js';
import { HandshakeRefusedError, isOutOfPlace, refusal } from './protocol-adapter.js';
import type { HttpWire, ProbeResult } from './http/http-wire.js';
import type { OpenedSession, OpenSession, SessionHandlers } from './session-slots.js';
import { discovered, modernHeaders, type Discovered } from './modern-adapter.js';
import { openSse } from './http/sse-session.js';
import { openStreamable } from './http/streamable-session.js';

const ENDPOINT_MS_MAX = 5_000;

export interface ProbedEra {
  verdict: EraVerdict;
  discovered?: Discovered;
  opened?: OpenedSession;
}

/** @throws UpstreamFailure when the era cannot be determined */
export async function findEra(wire: HttpWire): Promise<ProbedEra> {
  let probe = await sendDiscover(wire);
  const code = probe.reply?.error?.code;
  // The request is retried once if the reply names a supported version, or a proxy dropped a header.
  const isRetried =
    code === rpcCode.unsupportedVersion ? namesVersion(probe.reply, [MODERN_VERSION]) : isHeaderLost(code);
  if (isRetried) probe = await sendDiscover(wire);
  const { reply, status } = probe;
  if (reply?.result) return ofResult(wire, reply);
  if (reply?.error && status !== 403 && status !== 429 && status < 500) return ofError(wire, reply);
  if (status === 500 || status === 501) return ofInitialize(wire, 'fails at server/discover');
  if (status >= 300 && (status < 400 || status === 403 || status === 429 || status >= 500)) {
    const isRefusal = reply?.error && status < 500 && status !== 429;
    throw isRefusal ? refusal(wire.target, reply.error?.message ?? '') : probe.error();
  }
  // The server might be a strict legacy one, or one of 2024-11-05, which replies over a stream.
  return ofInitialize(wire, 'does not read server/discover').catch(async (error: unknown) => {
    if (!isOutOfPlace(error)) throw error;
    const endpointMs = Math.min(wire.target.connectTimeoutMs, ENDPOINT_MS_MAX);
    let hasStream = false;
    const onStream = () => void (hasStream = true);
    try {
      const opened = await openPlain((profile, handlers) => openSse(wire, profile, handlers, endpointMs, onStream));
      return { verdict: verdictOf('sse', 'names an endpoint by its stream'), opened };
    } catch (refused) {
      const isReason = hasStream || refused instanceof UpstreamAuthRequiredError;
      throw refused instanceof UpstreamFailure && !isReason ? error : refused;
    }
  });
}

function sendDiscover(wire: HttpWire): Promise<ProbeResult> {
  const method = 'server/discover';
  return wire.probe(
    { method, params: withEnvelope(undefined) },
    {
      era: 'modern',
      headers: { ...modernHeaders(wire), 'mcp-method': method },
      timeoutMs: wire.target.connectTimeoutMs,
    },
  );
}

async function ofResult(wire: HttpWire, reply: McpReply): Promise<ProbedEra> {
  const { url } = wire.target;
  const versions = versionsOfDiscover(resultOf(reply));
  const modern = (reason: string): ProbedEra => ({
    verdict: verdictOf('modern', reason),
    discovered: discovered(reply, url),
  });
  if (versions?.includes(MODERN_VERSION)) return modern('names our version');
  if (versions && versions.some((version) => (LEGACY_VERSIONS as readonly unknown[]).includes(version))) {
    return { verdict: verdictOf('streamable', 'names legacy versions only') };
  }
  if (versions) identityOfDiscover(resultOf(reply), url);
  try {
    return await ofInitialize(wire, 'names no versions');
  } catch (error) {
    const isModern =
      (error instanceof HandshakeRefusedError && error.isOtherEra) ||
      (error instanceof UpstreamError && error.status === 404);
    if (isModern) return modern('takes no initialize');
    throw error;
  }
}

async function ofError(wire: HttpWire, reply: McpReply): Promise<ProbedEra> {
  const { code = 0, message = '' } = reply.error ?? {};
  if (code === rpcCode.unsupportedVersion) {
    if (namesVersion(reply, LEGACY_VERSIONS)) return { verdict: verdictOf('streamable', 'supports legacy versions') };
    const isNamed = Array.isArray((reply.error?.data as { supported?: unknown } | undefined)?.supported);
    if (isNamed) throw refusal(wire.target, message);
  }
  if (!isHeaderLost(code)) return { verdict: verdictOf('streamable', `answers server/discover with ${code}`) };
  try {
    return await ofInitialize(wire, `loses headers: ${code}`, true);
  } catch (error) {
    if (error instanceof HandshakeRefusedError) throw refusal(wire.target, message);
    throw error;
  }
}

async function ofInitialize(wire: HttpWire, reason: string, isUnsure = false): Promise<ProbedEra> {
  const opened = await openPlain((profile, handlers) => openStreamable(wire, profile, handlers));
  return { verdict: verdictOf('streamable', reason, isUnsure), opened };
}

/**
 * Tries `initialize` at an endpoint that speaks 2026-07-28. Returns null when the endpoint rejects it, or replies without a session,
 * and then could not send requests to its client either.
 *
 * @throws UpstreamFailure when the endpoint fails otherwise
 */
export async function findSession(wire: HttpWire): Promise<OpenedSession | null> {
  try {
    const opened = await openPlain((profile, handlers) => openStreamable(wire, profile, handlers));
    return opened.session.isStateful ? opened : null;
  } catch (error) {
    if (error instanceof HandshakeRefusedError || isOutOfPlace(error)) return null;
    throw error;
  }
}

async function openPlain(open: OpenSession): Promise<OpenedSession> {
  const handlers: SessionHandlers = {
    onNotification: () => undefined,
    onRequest: (method) => Promise.resolve(unansweredRequest(method)),
    onLost: () => undefined,
    mayProbe: () => false,
    onKnown: () => undefined,
  };
  return { session: await open(undefined, handlers), handlers };
}

/**
 * Returns true for errors that only modern servers send although the request carried everything required: a proxy removed a
 * header.
 */
function isHeaderLost(code: number | undefined): boolean {
  return code === rpcCode.headerMismatch || code === rpcCode.missingCapability;
}

function namesVersion(reply: McpReply | null, versions: readonly string[]): boolean {
  const supported = (reply?.error?.data as { supported?: unknown } | undefined)?.supported;
  return Array.isArray(supported) && versions.some((version) => supported.includes(version));
}
