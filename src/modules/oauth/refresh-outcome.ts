import type { Vault } from '../../platform/vault/vault.js';
import { openTokens, type HeldTokens } from './stored-tokens.js';
import type { UpstreamCredential } from './upstream-credential.entity.js';

/** An upstream that refuses a token this young does not refuse it for its age. */
const FRESH_MS = 10_000;

/** How a refresh ended. */
export type RefreshOutcome =
  | { kind: 'token'; accessToken: string }
  /** Somebody must authorize anew. */
  | { kind: 'required'; message: string }
  /** Not now; nothing was lost. `accessToken` is the old one while it lives. */
  | { kind: 'away'; message: string; accessToken: string | null }
  /** The credential was deleted. */
  | { kind: 'gone' };

/** What the caller knew when it asked. */
export interface RefreshRequest {
  id: string;
  generation: number;
  /** The host of the token endpoint. */
  host: string;
  /** The token an upstream just refused; absent when a token is due. */
  rejected?: string;
  /** Called once for all who wait for one attempt, before any of them goes on. */
  onSettled: () => void;
}

/** What needs no question: others were faster, the authorization is over, or a pause is due. */
export function settledBefore(row: UpstreamCredential, request: RefreshRequest, vault: Vault): RefreshOutcome | null {
  const held = openTokens(row, vault);
  if (!held) return { kind: 'required', message: `The authorization at ${issuerOf(row)} has ended.` };
  const { rejected, generation } = request;
  const isNewer = row.generation !== generation && held.accessToken !== rejected;
  if (isNewer && !isPast(row.dueAt)) return { kind: 'token', accessToken: held.accessToken };
  if (rejected === held.accessToken && row.refreshedAt && Date.now() - row.refreshedAt.getTime() < FRESH_MS) {
    return { kind: 'required', message: 'The MCP server refuses even a token that was issued a moment ago.' };
  }
  if (row.retryAt && !isPast(row.retryAt)) {
    return away(`${issuerOf(row)} could not be asked a moment ago.`, row, held, rejected);
  }
  return null;
}

/** What is to be said when nobody could be asked. */
export function away(
  reason: string,
  row: UpstreamCredential,
  held: HeldTokens,
  rejected: string | undefined,
): RefreshOutcome {
  const isUsable = !isPast(row.expiresAt) && held.accessToken !== rejected;
  return { kind: 'away', message: reason, accessToken: isUsable ? held.accessToken : null };
}

/** True when a time was; null never is. */
export function isPast(time: Date | null): boolean {
  return time !== null && time.getTime() <= Date.now();
}

/** The host people know the authorization server by, or the registry server that stands in its place. */
export function issuerOf({ server }: Pick<UpstreamCredential, 'server'>): string {
  return server.adapter ?? new URL(server.issuer).host;
}
