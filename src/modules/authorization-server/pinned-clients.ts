/**
 * Client id metadata documents to use when the client's own cannot be fetched and no older copy is stored: some clouds get a 403 from
 * claude.ai and chatgpt.com. The documents are of September 2026. The keys of ChatGPT (`jwks_uri`) change and are not pinned: a client that
 * signs its token request then fails, with an explanation.
 */

const CODE_AND_REFRESH = ['authorization_code', 'refresh_token'];

const documents = [
  {
    client_id: 'https://claude.ai/oauth/mcp-oauth-client-metadata',
    client_name: 'Claude',
    client_uri: 'https://claude.ai',
    redirect_uris: ['https://claude.ai/api/mcp/auth_callback'],
    token_endpoint_auth_method: 'none',
    grant_types: [...CODE_AND_REFRESH, 'urn:ietf:params:oauth:grant-type:jwt-bearer'],
    response_types: ['code'],
  },
  {
    client_id: 'https://claude.ai/oauth/claude-code-client-metadata',
    client_name: 'Claude Code',
    client_uri: 'https://claude.ai',
    redirect_uris: ['http://localhost/callback', 'http://127.0.0.1/callback'],
    token_endpoint_auth_method: 'none',
    grant_types: CODE_AND_REFRESH,
    response_types: ['code'],
  },
  {
    client_id: 'https://chatgpt.com/oauth/client.json',
    client_name: 'ChatGPT',
    client_uri: 'https://chatgpt.com/',
    logo_uri: 'https://persistent.oaistatic.com/sonic/misc/openai-logo.png',
    redirect_uris: ['https://chatgpt.com/connector_platform_oauth_redirect'],
    token_endpoint_auth_method: 'private_key_jwt',
    token_endpoint_auth_methods_supported: ['none', 'private_key_jwt'],
    token_endpoint_auth_signing_alg: 'RS256',
    jwks_uri: 'https://chatgpt.com/oauth/jwks.json',
    grant_types: CODE_AND_REFRESH,
    response_types: ['code'],
  },
  {
    client_id: 'https://chatgpt.com/oauth/codex/client.json',
    client_name: 'Codex',
    client_uri: 'https://chatgpt.com/codex',
    logo_uri: 'https://persistent.oaistatic.com/sonic/misc/openai-logo.png',
    application_type: 'native',
    redirect_uris: ['http://127.0.0.1/callback', 'http://localhost/callback'],
    token_endpoint_auth_method: 'none',
    token_endpoint_auth_methods_supported: ['none'],
    grant_types: CODE_AND_REFRESH,
    response_types: ['code'],
  },
];

export const pinnedClients: ReadonlyMap<string, string> = new Map(
  documents.map((document) => [document.client_id, JSON.stringify(document)]),
);
