/**
 * What answers at an endpoint: a `modern` server (2026-07-28), or a legacy one over `streamable` HTTP or over `sse`, the
 * two endpoints of 2024-11-05.
 */
export type EndpointKind = 'modern' | 'streamable' | 'sse';

/** What is known of an endpoint. */
export interface EraVerdict {
  kind: EndpointKind;
  /** What the server did that told, for whoever looks into it. */
  reason: string;
  learnedAt: number;
  /** From then on it is found out anew; both in epoch milliseconds. */
  expiresAt: number;
}

const HOUR_MS = 3_600_000;

/**
 * A modern verdict that has become wrong fails loudly, so it holds until it is contradicted; 90 days bound the table. A
 * legacy one that has become wrong works on silently, so it holds for a day, and one that may be a proxy's doing for an hour.
 */
const TTL_MS = { modern: 90 * 24 * HOUR_MS, legacy: 24 * HOUR_MS, unsure: HOUR_MS };

/** A verdict of this moment. */
export function verdictOf(kind: EndpointKind, reason: string, isUnsure = false): EraVerdict {
  const ttlMs = isUnsure ? TTL_MS.unsure : kind === 'modern' ? TTL_MS.modern : TTL_MS.legacy;
  const now = Date.now();
  return { kind, reason, learnedAt: now, expiresAt: now + ttlMs };
}

/** True for a legacy verdict old enough to be doubted when the server has lost its sessions: it may be a new one now. */
export function isDoubtful({ learnedAt }: EraVerdict): boolean {
  return Date.now() - learnedAt > HOUR_MS;
}
