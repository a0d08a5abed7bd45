import { createHash, randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { OAuthSetupError, TokenEndpointAwayError, TokenRefusedError } from '../../mcp/oauth/oauth-errors.js';
import type { AuthorizationServer, AuthorizationTarget } from '../../mcp/oauth/discovery.js';
import { DomainError } from '../../platform/errors/domain-error.js';
import type { AuthAdapter } from '../../mcp/oauth/auth-adapter.types.js';
import type { BeginAuthorization, CredentialOwner } from './credentials.types.js';

/** Finds the adapter for one connection, with its values; null when its server has none. */
type Finder = (connectionId: string) => Promise<AuthAdapter | null>;

/** The adapters of hosted servers, in the place of authorization servers. */
@Injectable()
export class AuthAdaptersService {
  private find: Finder = () => Promise.resolve(null);

  /** For the module that knows connections, once at start. */
  provide(find: Finder): void {
    this.find = find;
  }

  /** What an authorization by an adapter is for. Its address is nobody's: nothing is ever sent there. */
  targetOf({ upstreamUrl: url, adapter }: BeginAuthorization & { adapter: string }): AuthorizationTarget {
    const nothing = { registrationEndpoint: null, revocationEndpoint: null, tokenEndpointAuthMethods: null };
    const endpoints = { issuer: url, authorizationEndpoint: url, tokenEndpoint: url };
    const server = { ...endpoints, ...nothing, readsClientDocuments: false, sendsIss: false, adapter };
    return { server, resource: url, scopes: null };
  }

  /** Asks once in vain, to learn where a person would sign in. @throws OAuthSetupError */
  async located(owner: CredentialOwner, server: AuthorizationServer, callbackUrl: string) {
    const { url } = await this.signIn(owner, { callbackUrl, state: randomBytes(32).toString('base64url') });
    return { ...server, authorizationEndpoint: new URL(url).origin };
  }

  /** The address to send a person to, and the secret behind its challenge (RFC 7636). @throws OAuthSetupError */
  async signIn(owner: CredentialOwner, ask: { callbackUrl: string; state: string }) {
    const codeVerifier = randomBytes(32).toString('base64url');
    const codeChallenge = createHash('sha256').update(codeVerifier).digest('base64url');
    try {
      const url = await (await this.of(owner)).authorizationUrl({ ...ask, codeChallenge });
      return { url, codeVerifier };
    } catch (error) {
      if (error instanceof TokenEndpointAwayError || error instanceof TokenRefusedError) {
        throw new OAuthSetupError(error.message);
      }
      throw error;
    }
  }

  /** The adapter for an owner. @throws TokenEndpointAwayError when there is none now, or nothing to ask it with */
  async of({ id }: CredentialOwner): Promise<AuthAdapter> {
    let found: AuthAdapter | null;
    try {
      found = await this.find(id);
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      throw new TokenEndpointAwayError(error.message);
    }
    if (found) return found;
    throw new TokenEndpointAwayError('The current release of the server authorizes nobody: it has no auth adapter.');
  }
}
