import {
  IssuerMismatchError,
  startAuthorization,
  validateAuthorizationResponseIssuer,
} from '@modelcontextprotocol/client';
import { sdkMetadata, type OAuthClientIdentity } from './client.js';
import type { AuthorizationServer } from './discovery.js';

/** What a person is sent to an authorization server with. */
export interface AuthorizationRequest {
  server: AuthorizationServer;
  client: OAuthClientIdentity;
  redirectUri: string;
  resource: string;
  scopes: string | null;
  state: string;
}

/** The address to send the person to, and the secret that proves later that the code was meant for us (RFC 7636). */
export async function authorizationUrl(request: AuthorizationRequest): Promise<{ url: string; codeVerifier: string }> {
  const { server, client, redirectUri, resource, scopes, state } = request;
  const { authorizationUrl: url, codeVerifier } = await startAuthorization(server.issuer, {
    metadata: sdkMetadata(server),
    clientInformation: { client_id: client.clientId },
    redirectUrl: redirectUri,
    scope: scopes ?? undefined,
    state,
    resource,
  });
  return { url: url.href, codeVerifier };
}

/** True when an answer is from the server that was asked, as far as it says so (RFC 9207 section 2.4). */
export function isFromServer(
  server: Pick<AuthorizationServer, 'issuer' | 'sendsIss'>,
  iss: string | undefined,
): boolean {
  try {
    validateAuthorizationResponseIssuer({ iss, expectedIssuer: server.issuer, issParameterSupported: server.sendsIss });
    return true;
  } catch (error) {
    if (error instanceof IssuerMismatchError) return false;
    throw error;
  }
}
