import type { McpReply } from '../protocol/channel.js';
import { fromHttpStatus, UpstreamAuthRequiredError, UpstreamError, UpstreamFailure } from '../protocol/mcp-errors.js';
import { resultOf, withEnvelope } from '../protocol/messages.js';
import { LEGACY_VERSIONS, MODERN_VERSION, rpcCode } from '../protocol/protocol.js';
import { helloOfDiscover, versionsOfDiscover } from '../protocol/session.js';
import { verdictOf, type EraVerdict } from '../eras/era-store.js';
import { HandshakeRefusedError, isOutOfPlace } from './protocol-adapter.js';
import type { HttpWire, Look } from './http/http-wire.js';
import type { OpenedSession, OpenSession, SessionEars } from './session-slots.js';
import { discovered, modernHeaders, type Discovered } from './modern-adapter.js';
import { refusal } from './refusal.js';
import { openSse } from './http/sse-session.js';
import { openStreamable } from './http/streamable-session.js';

/** How long an endpoint may take to say what it is; less where handshakes may take less. */
const PROBE_MS_MAX = 8_000;

/** How long a stream may take to name its endpoint while nobody knows whether it will. */
const ENDPOINT_MS_MAX = 5_000;

/** What an endpoint turned out to be, and what was opened to find that out. */
export interface Found {
  verdict: EraVerdict;
  discovered?: Discovered;
  opened?: OpenedSession;
}

/**
 * Finds out what answers at an endpoint. `server/discover` comes first: a legacy server cannot mistake it for a call, and
 * what it answers tells the eras apart (MCP 2026-07-28, backward compatibility).
 *
 * @throws UpstreamFailure when it cannot be told: nothing answers, it wants authorization, it fails, it is no MCP endpoint
 */
export async function findEra(wire: HttpWire): Promise<Found> {
  let look = await lookAt(wire);
  const code = look.reply?.error?.code;
  // A version of ours that it names, or a header that got lost on the way, deserves a second look.
  const isRetried = code === rpcCode.unsupportedVersion ? namesVersion(look.reply, [MODERN_VERSION]) : isMisheard(code);
  if (isRetried) look = await lookAt(wire);
  const { reply, status } = look;
  if (reply?.result) return ofResult(wire, reply);
  if (reply?.error && status !== 403 && status !== 429 && status < 500) return ofError(wire, reply);
  if (status === 500 || status === 501) return { ...(await ofInitialize(wire, 'fails at server/discover')) };
  if (status >= 300 && (status < 400 || status === 403 || status === 429 || status >= 500)) throw undecided(wire, look);
  return ofInitializeOrSse(wire);
}

function lookAt(wire: HttpWire): Promise<Look> {
  const method = 'server/discover';
  return wire.look(
    { method, params: withEnvelope(undefined) },
    {
      era: 'modern',
      headers: { ...modernHeaders(wire), 'mcp-method': method },
      timeoutMs: Math.min(wire.target.connectTimeoutMs, PROBE_MS_MAX),
    },
  );
}

async function ofResult(wire: HttpWire, reply: McpReply): Promise<Found> {
  const { url } = wire.target;
  const versions = versionsOfDiscover(resultOf(reply));
  const modern = (reason: string): Found => ({
    verdict: verdictOf('modern', reason),
    discovered: discovered(reply, url),
  });
  if (versions?.includes(MODERN_VERSION)) return modern('names our version');
  if (versions && versions.some((version) => (LEGACY_VERSIONS as readonly unknown[]).includes(version))) {
    return { verdict: verdictOf('streamable', 'names legacy versions only') };
  }
  // Throws: no version of ours.
  if (versions) helloOfDiscover(resultOf(reply), url);
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

async function ofError(wire: HttpWire, reply: McpReply): Promise<Found> {
  const { code = 0, message = '' } = reply.error ?? {};
  if (code === rpcCode.unsupportedVersion) {
    if (namesVersion(reply, LEGACY_VERSIONS)) return { verdict: verdictOf('streamable', 'supports legacy versions') };
    const isNamed = Array.isArray((reply.error?.data as { supported?: unknown } | undefined)?.supported);
    if (isNamed) throw refusal(wire.target, message);
  }
  if (!isMisheard(code)) return { verdict: verdictOf('streamable', `answers server/discover with ${code}`) };
  try {
    return await ofInitialize(wire, `loses headers: ${code}`, true);
  } catch (error) {
    if (error instanceof HandshakeRefusedError) throw refusal(wire.target, message);
    throw error;
  }
}

async function ofInitialize(wire: HttpWire, reason: string, isUnsure = false): Promise<Found> {
  const opened = await plain((profile, ears) => openStreamable(wire, profile, ears));
  return { verdict: verdictOf('streamable', reason, isUnsure), opened };
}

/** What is no MCP may be a legacy server that is strict, or one of the oldest, whose answers come by a stream. */
async function ofInitializeOrSse(wire: HttpWire): Promise<Found> {
  try {
    return await ofInitialize(wire, 'does not read server/discover');
  } catch (error) {
    if (!isOutOfPlace(error)) throw error;
    const endpointMs = Math.min(wire.target.connectTimeoutMs, ENDPOINT_MS_MAX);
    try {
      const opened = await plain((profile, ears) => openSse(wire, profile, ears, endpointMs));
      return { verdict: verdictOf('sse', 'names an endpoint by its stream'), opened };
    } catch (refused) {
      if (refused instanceof UpstreamAuthRequiredError || refused instanceof HandshakeRefusedError) throw refused;
      if (refused instanceof UpstreamFailure) throw error;
      throw refused;
    }
  }
}

async function plain(open: OpenSession): Promise<OpenedSession> {
  const ears: SessionEars = { onNotification: () => undefined, onLost: () => undefined };
  return { session: await open(undefined, ears), ears };
}

function undecided({ target }: HttpWire, { status, location, reply }: Look): UpstreamError {
  if (reply?.error && status < 500 && status !== 429) return refusal(target, reply.error.message);
  return fromHttpStatus(status, target.url, location);
}

/** Only modern servers say so, and we said everything they ask for: something between us takes it away. */
function isMisheard(code: number | undefined): boolean {
  return code === rpcCode.headerMismatch || code === rpcCode.missingCapability;
}

function namesVersion(reply: McpReply | null, versions: readonly string[]): boolean {
  const supported = (reply?.error?.data as { supported?: unknown } | undefined)?.supported;
  return Array.isArray(supported) && versions.some((version) => supported.includes(version));
}
