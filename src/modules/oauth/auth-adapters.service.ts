import { createHash, randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { OAuthSetupError, TokenEndpointUnreachableError, TokenRefusedError } from '../../mcp/oauth/oauth-errors.js';
import type { AuthorizationServer, AuthorizationTarget } from '../../mcp/oauth/discovery.js';
import { DomainError } from '../../platform/errors/domain-error.js';
import type { AuthAdapter } from '../../mcp/oauth/tokens.js';
import type { BeginAuthorization, CredentialOwner } from './credentials.types.js';

/** Finds the adapter of a connection's server, with the connection's values; null if the server has none. */
type Finder = (connectionId: string) => Promise<AuthAdapter | null>;

/** The auth adapters of hosted servers, which take the place of authorization servers. */
@Injectable()
export class AuthAdaptersService {
  private find: Finder = () => Promise.resolve(null);

  /** Sets the finder; called by modules/connections at start. */
  provide(find: Finder): void {
    this.find = find;
  }

  /** The target of an authorization by an adapter. Nothing is sent to its URL, which only identifies it. */
  targetOf({ upstreamUrl: url, adapter }: BeginAuthorization & { adapter: string }): AuthorizationTarget {
    const nothing = { registrationEndpoint: null, revocationEndpoint: null, tokenEndpointAuthMethods: null };
    const endpoints = { issuer: url, authorizationEndpoint: url, tokenEndpoint: url };
    const server = { ...endpoints, ...nothing, readsClientDocuments: false, sendsIss: false, adapter };
    return { server, resource: url, resourceName: null, scopes: null };
  }

  /** The server with the address where a person would sign in, from a sign-in that is not used. @throws OAuthSetupError */
  async located(owner: CredentialOwner, server: AuthorizationServer, callbackUrl: string) {
    const { url } = await this.signIn(owner, { callbackUrl, state: randomBytes(32).toString('base64url') });
    return { ...server, authorizationEndpoint: new URL(url).origin };
  }

  /** The address to redirect a person to, and the PKCE verifier (RFC 7636). @throws OAuthSetupError */
  async signIn(owner: CredentialOwner, ask: { callbackUrl: string; state: string }) {
    const codeVerifier = randomBytes(32).toString('base64url');
    const codeChallenge = createHash('sha256').update(codeVerifier).digest('base64url');
    try {
      const url = await (await this.of(owner)).authorizationUrl({ ...ask, codeChallenge });
      return { url, codeVerifier };
    } catch (error) {
      if (error instanceof TokenEndpointUnreachableError || error instanceof TokenRefusedError) {
        throw new OAuthSetupError(error.message);
      }
      throw error;
    }
  }

  /** The adapter for an owner. @throws TokenEndpointUnreachableError if there is none, or a value it needs is missing */
  async of({ id }: CredentialOwner): Promise<AuthAdapter> {
    let adapter: AuthAdapter | null;
    try {
      adapter = await this.find(id);
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      throw new TokenEndpointUnreachableError(error.message);
    }
    if (adapter) return adapter;
    throw new TokenEndpointUnreachableError(
      'The current release of the server authorizes nobody: it has no auth adapter.',
    );
  }
}
