/** Users who authorize at the same authorization server concurrently, while their requests stay without a response. */
import { expect, it, jest } from '@jest/globals';
import type { AuthorizationServer } from '../../../src/mcp/oauth/discovery.js';
import { CredentialsRepository } from '../../../src/modules/oauth/credential.repository.js';
import { OAuthClientsService } from '../../../src/modules/oauth/oauth-clients.service.js';
import { testApp } from '../../support/app.js';
import { newOwner } from '../../support/people/credentials.js';

const app = testApp();

it('each get a client, and one client stays in use', async () => {
  const issuer = 'https://auth.example.com';
  const server: AuthorizationServer = {
    issuer,
    authorizationEndpoint: `${issuer}/authorize`,
    tokenEndpoint: `${issuer}/token`,
    registrationEndpoint: `${issuer}/register`,
    revocationEndpoint: null,
    tokenEndpointAuthMethods: ['none'],
    readsClientDocuments: false,
    sendsIss: false,
  };
  let registered = 0;
  const register = (_url: string | URL, init?: { body?: unknown }): Promise<Response> =>
    Promise.resolve(
      Response.json({ ...JSON.parse(String(init?.body)), client_id: `client-${(registered += 1)}` }, { status: 201 }),
    );
  const owner = newOwner();
  const service = app.get(OAuthClientsService);
  // The server seems to have forgotten every client.
  jest.spyOn(app.get(CredentialsRepository), 'isUnanswered').mockResolvedValue(true);
  for (let round = 0; round < 8; round += 1) {
    const clients = await Promise.all(
      Array.from({ length: 12 }, () => service.obtain(register as never, server, owner)),
    );
    expect(clients.every(({ clientId }) => clientId.startsWith('client-'))).toBe(true);
  }
  const inUse = 'SELECT 1 FROM oauth_clients WHERE issuer = $1 AND retired_at IS NULL';
  expect(await app.database.query(inUse, [issuer])).toHaveLength(1);
});
