import { dueInSeconds, type TokenSet } from '../../mcp/oauth/tokens.js';
import type { Vault } from '../../platform/vault/vault.js';
import type { UpstreamCredential } from './upstream-credential.entity.js';

export interface OpenedTokens {
  accessToken: string;
  refreshToken: string | null;
}

export function openTokens(row: Pick<UpstreamCredential, 'id' | 'sealedTokens'>, vault: Vault): OpenedTokens | null {
  return row.sealedTokens === null ? null : (JSON.parse(vault.open(row.sealedTokens, row.id)) as OpenedTokens);
}

/** Returns tokens to store; their expiry is relative to now, as `expires_in` is. */
export function storedTokens(
  row: Pick<UpstreamCredential, 'id' | 'scopes' | 'generation'>,
  tokens: TokenSet,
  vault: Vault,
): Pick<
  UpstreamCredential,
  'sealedTokens' | 'scopes' | 'expiresAt' | 'dueAt' | 'generation' | 'failures' | 'retryAt' | 'state'
> {
  const { accessToken, refreshToken, expiresInSeconds: seconds, scopes } = tokens;
  const openTokenPair: OpenedTokens = { accessToken, refreshToken };
  const toDate = (inSeconds: number) => new Date(Date.now() + inSeconds * 1_000);
  return {
    sealedTokens: vault.seal(JSON.stringify(openTokenPair), row.id),
    scopes: scopes ?? row.scopes,
    expiresAt: seconds === null ? null : toDate(seconds),
    dueAt: seconds === null ? null : toDate(dueInSeconds(seconds)),
    generation: row.generation + 1,
    failures: 0,
    retryAt: null,
    state: 'active',
  };
}

/** Returns the host of the authorization server, or the name of the registry server whose adapter replaces it. */
export function issuerOf({ server }: Pick<UpstreamCredential, 'server'>): string {
  return server.adapter ?? new URL(server.issuer).host;
}
