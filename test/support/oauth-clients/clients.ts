/*
 * What MCP clients send to log in by URL: registration bodies (RFC 7591), client id metadata documents, and the parameters of
 * their authorization requests. Clients change monthly, so each entry has a date.
 *
 * `published`: the document as its address served it on that date, by public records. `observed`: a body put together from the
 * client's source and from reports of servers; members that the client fills in at run time, such as a port, have an example value.
 * A test takes every client of `clients` through registration and authorization; every one of `refusedClients` is refused
 * with words that match `refusal`.
 */

/** How a client registers and what it asks for. */
export interface ClientFixture {
  name: string;
  /** `YYYY-MM-DD`. */
  asOf: string;
  source: 'published' | 'observed';
  /** `document`: its client id is the URL of `metadata`. `registration`: it posts `metadata` and gets a client id. */
  kind: 'document' | 'registration';
  /** The document, or the body of the registration. */
  metadata: Record<string, unknown>;
  /** `scope` of the authorization request; null: none is sent. `{supported}` stands for all of the server's `scopes_supported`. */
  scope: string | null;
  /** `redirect_uri` of the authorization request. Its port and host may differ from the registered ones. */
  redirectUri: string;
  /** A refresh carries `resource`. */
  refreshHasResource: boolean;
}

const CODE_AND_REFRESH = ['authorization_code', 'refresh_token'];
const PUBLIC = { grant_types: CODE_AND_REFRESH, response_types: ['code'], token_endpoint_auth_method: 'none' };
const CHATGPT = {
  client_uri: 'https://chatgpt.com/',
  token_endpoint_auth_method: 'private_key_jwt',
  token_endpoint_auth_methods_supported: ['none', 'private_key_jwt'],
  grant_types: CODE_AND_REFRESH,
  response_types: ['code'],
  client_name: 'ChatGPT',
  logo_uri: 'https://persistent.oaistatic.com/sonic/misc/openai-logo.png',
  token_endpoint_auth_signing_alg: 'RS256',
  jwks_uri: 'https://chatgpt.com/oauth/jwks.json',
};

export const clients: ClientFixture[] = [
  {
    name: 'Claude',
    asOf: '2026-09-29',
    source: 'published',
    kind: 'document',
    metadata: {
      client_id: 'https://claude.ai/oauth/mcp-oauth-client-metadata',
      client_name: 'Claude',
      client_uri: 'https://claude.ai',
      redirect_uris: ['https://claude.ai/api/mcp/auth_callback'],
      grant_types: [...CODE_AND_REFRESH, 'urn:ietf:params:oauth:grant-type:jwt-bearer'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    },
    scope: '{supported}',
    redirectUri: 'https://claude.ai/api/mcp/auth_callback',
    refreshHasResource: true,
  },
  {
    name: 'Claude, registered',
    asOf: '2026-11-20',
    source: 'observed',
    kind: 'registration',
    metadata: {
      client_name: 'Claude',
      client_uri: 'https://claude.ai',
      redirect_uris: ['https://claude.ai/api/mcp/auth_callback', 'https://claude.com/api/mcp/auth_callback'],
      grant_types: CODE_AND_REFRESH,
      response_types: ['code'],
      token_endpoint_auth_method: 'client_secret_post',
      scope: 'mcp offline_access',
    },
    scope: '{supported}',
    redirectUri: 'https://claude.ai/api/mcp/auth_callback',
    refreshHasResource: true,
  },
  {
    name: 'Claude Code',
    asOf: '2026-09-21',
    source: 'published',
    kind: 'document',
    metadata: {
      client_id: 'https://claude.ai/oauth/claude-code-client-metadata',
      client_name: 'Claude Code',
      client_uri: 'https://claude.ai',
      redirect_uris: ['http://localhost/callback', 'http://127.0.0.1/callback'],
      ...PUBLIC,
    },
    scope: 'mcp offline_access',
    redirectUri: 'http://127.0.0.1:53112/callback',
    refreshHasResource: true,
  },
  {
    name: 'Claude Code, registered with one host and using the other',
    asOf: '2026-11-20',
    source: 'observed',
    kind: 'registration',
    metadata: { client_name: 'Claude Code (acme)', redirect_uris: ['http://localhost:53110/callback'], ...PUBLIC },
    scope: 'mcp offline_access',
    redirectUri: 'http://127.0.0.1:53111/callback',
    refreshHasResource: true,
  },
  {
    name: 'ChatGPT',
    asOf: '2026-09-26',
    source: 'published',
    kind: 'document',
    metadata: {
      client_id: 'https://chatgpt.com/oauth/client.json',
      redirect_uris: ['https://chatgpt.com/connector_platform_oauth_redirect'],
      ...CHATGPT,
    },
    scope: 'mcp offline_access',
    redirectUri: 'https://chatgpt.com/connector_platform_oauth_redirect',
    refreshHasResource: true,
  },
  {
    name: 'ChatGPT, a document for each connector',
    asOf: '2026-09-13',
    source: 'published',
    kind: 'document',
    metadata: {
      client_id: 'https://chatgpt.com/oauth/09QNletoUsmb/client.json',
      redirect_uris: ['https://chatgpt.com/connector/oauth/09QNletoUsmb'],
      ...CHATGPT,
    },
    scope: 'mcp offline_access',
    redirectUri: 'https://chatgpt.com/connector/oauth/09QNletoUsmb',
    refreshHasResource: true,
  },
  {
    name: 'ChatGPT, registered',
    asOf: '2026-11-20',
    source: 'observed',
    kind: 'registration',
    metadata: {
      client_name: 'ChatGPT',
      redirect_uris: ['https://chatgpt.com/connector/oauth/09QNletoUsmb'],
      ...PUBLIC,
    },
    scope: 'mcp',
    redirectUri: 'https://chatgpt.com/connector/oauth/09QNletoUsmb',
    refreshHasResource: true,
  },
  {
    name: 'Codex',
    asOf: '2026-09-10',
    source: 'published',
    kind: 'document',
    metadata: {
      client_id: 'https://chatgpt.com/oauth/codex/client.json',
      client_uri: 'https://chatgpt.com/codex',
      application_type: 'native',
      redirect_uris: ['http://127.0.0.1/callback', 'http://localhost/callback'],
      token_endpoint_auth_method: 'none',
      token_endpoint_auth_methods_supported: ['none'],
      grant_types: CODE_AND_REFRESH,
      response_types: ['code'],
      client_name: 'Codex',
      logo_uri: 'https://persistent.oaistatic.com/sonic/misc/openai-logo.png',
    },
    scope: '{supported}',
    redirectUri: 'http://127.0.0.1:41239/callback',
    refreshHasResource: false,
  },
  {
    name: 'Codex, registered with a path of its own',
    asOf: '2026-11-20',
    source: 'observed',
    kind: 'registration',
    metadata: { client_name: 'Codex', redirect_uris: ['http://127.0.0.1:41240/callback/5f3a9c27'], ...PUBLIC },
    scope: null,
    redirectUri: 'http://127.0.0.1:41240/callback/5f3a9c27',
    refreshHasResource: false,
  },
  {
    name: 'Cursor',
    asOf: '2026-11-20',
    source: 'observed',
    kind: 'registration',
    metadata: {
      client_name: 'Cursor',
      application_type: 'web',
      redirect_uris: [
        'http://localhost:8787/callback',
        'https://www.cursor.com/agents/mcp/oauth/callback',
        'cursor://anysphere.cursor-mcp/oauth/callback',
      ],
      ...PUBLIC,
    },
    scope: '{supported}',
    redirectUri: 'cursor://anysphere.cursor-mcp/oauth/callback',
    refreshHasResource: true,
  },
  {
    name: 'VS Code',
    asOf: '2026-09-21',
    source: 'published',
    kind: 'document',
    metadata: {
      client_name: 'Visual Studio Code',
      logo_uri: 'https://code.visualstudio.com/assets/branding/code-stable.png',
      grant_types: [...CODE_AND_REFRESH, 'urn:ietf:params:oauth:grant-type:device_code'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
      application_type: 'native',
      client_id: 'https://vscode.dev/oauth/client-metadata.json',
      client_uri: 'https://vscode.dev/product',
      redirect_uris: ['http://127.0.0.1:33418/', 'https://vscode.dev/redirect'],
    },
    scope: 'mcp',
    redirectUri: 'http://127.0.0.1:54021/',
    refreshHasResource: true,
  },
  {
    name: 'VS Code, registered',
    asOf: '2026-09-21',
    source: 'observed',
    kind: 'registration',
    metadata: {
      client_name: 'Visual Studio Code',
      client_uri: 'https://code.visualstudio.com',
      ...PUBLIC,
      redirect_uris: [
        'https://insiders.vscode.dev/redirect',
        'https://vscode.dev/redirect',
        'http://127.0.0.1/',
        'http://127.0.0.1:33418/',
      ],
      scope: 'openid',
      application_type: 'native',
    },
    scope: 'mcp',
    redirectUri: 'https://vscode.dev/redirect',
    refreshHasResource: true,
  },
  {
    name: 'Copilot CLI',
    asOf: '2026-11-20',
    source: 'observed',
    kind: 'registration',
    metadata: { client_name: 'GitHub Copilot CLI', redirect_uris: ['http://127.0.0.1:40125/'], ...PUBLIC },
    scope: null,
    redirectUri: 'http://127.0.0.1:40125/',
    refreshHasResource: true,
  },
  {
    name: 'Gemini CLI',
    asOf: '2026-11-20',
    source: 'observed',
    kind: 'registration',
    metadata: {
      client_name: 'Gemini CLI MCP Client',
      redirect_uris: ['http://localhost:7777/oauth/callback'],
      ...PUBLIC,
      code_challenge_method: ['S256'],
      scope: '',
    },
    scope: 'mcp',
    redirectUri: 'http://localhost:7777/oauth/callback',
    refreshHasResource: true,
  },
  {
    name: 'Antigravity CLI',
    asOf: '2026-11-20',
    source: 'observed',
    kind: 'registration',
    metadata: { client_name: 'Antigravity', redirect_uris: ['https://antigravity.google/oauth-callback'], ...PUBLIC },
    scope: 'mcp',
    redirectUri: 'https://antigravity.google/oauth-callback',
    refreshHasResource: true,
  },
  {
    name: 'Goose',
    asOf: '2026-09-21',
    source: 'published',
    kind: 'document',
    metadata: {
      client_id: 'https://goose-docs.ai/oauth/client-metadata.json',
      client_name: 'goose',
      logo_uri: 'https://goose-docs.ai/img/logo_light.png',
      redirect_uris: ['http://127.0.0.1/oauth_callback', 'http://[::1]/oauth_callback'],
      ...PUBLIC,
      code_challenge_methods_supported: ['S256'],
    },
    scope: 'mcp',
    redirectUri: 'http://127.0.0.1:45001/oauth_callback',
    refreshHasResource: true,
  },
  {
    name: 'Windsurf',
    asOf: '2026-11-20',
    source: 'observed',
    kind: 'registration',
    metadata: {
      client_name: 'Windsurf',
      redirect_uris: ['http://127.0.0.1:39099/oauth/callback'],
      ...PUBLIC,
      client_uri: null,
      logo_uri: null,
      scope: 'openid email profile mcp.read mcp.write',
    },
    scope: 'openid email profile',
    redirectUri: 'http://127.0.0.1:39099/oauth/callback',
    refreshHasResource: true,
  },
  {
    name: 'Zed',
    asOf: '2026-09-21',
    source: 'published',
    kind: 'document',
    metadata: {
      client_id: 'https://zed.dev/oauth/client-metadata.json',
      client_name: 'Zed',
      client_uri: 'https://zed.dev',
      redirect_uris: ['http://127.0.0.1/callback'],
      ...PUBLIC,
      logo_uri: 'https://cdn.zed.dev/images/logo-dark.png',
    },
    scope: 'mcp',
    redirectUri: 'http://127.0.0.1:49152/callback',
    refreshHasResource: true,
  },
  {
    name: 'opencode',
    asOf: '2026-09-07',
    source: 'published',
    kind: 'document',
    metadata: {
      client_id: 'https://opencode.ai/oauth/opencode/client.json',
      client_name: 'opencode',
      client_uri: 'https://opencode.ai',
      logo_uri: 'https://opencode.ai/web-app-manifest-512x512.png',
      application_type: 'native',
      redirect_uris: ['http://127.0.0.1/callback', 'http://localhost/callback'],
      ...PUBLIC,
      token_endpoint_auth_methods_supported: ['none'],
    },
    scope: 'mcp',
    redirectUri: 'http://127.0.0.1:19876/callback',
    refreshHasResource: true,
  },
  {
    name: 'LibreChat, on a host of its operator',
    asOf: '2026-11-20',
    source: 'observed',
    kind: 'registration',
    metadata: {
      client_name: 'LibreChat MCP Client',
      redirect_uris: ['https://chat.example.com/api/mcp/acme/oauth/callback'],
      grant_types: CODE_AND_REFRESH,
      response_types: ['code'],
      token_endpoint_auth_method: 'client_secret_basic',
    },
    scope: '{supported}',
    redirectUri: 'https://chat.example.com/api/mcp/acme/oauth/callback',
    refreshHasResource: true,
  },
  {
    name: 'mcp-remote',
    asOf: '2026-11-20',
    source: 'observed',
    kind: 'registration',
    metadata: {
      client_name: 'MCP CLI Proxy',
      client_uri: 'https://github.com/modelcontextprotocol/mcp-cli',
      redirect_uris: ['http://localhost:3334/oauth/callback'],
      ...PUBLIC,
      software_id: '2e6dc280-f3c3-4e01-99a7-8181dbd1d23d',
      software_version: '0.1.37',
      scope: 'openid email profile',
    },
    scope: 'openid email profile',
    redirectUri: 'http://localhost:3334/oauth/callback',
    refreshHasResource: true,
  },
  {
    name: 'MCP Inspector',
    asOf: '2026-09-21',
    source: 'observed',
    kind: 'registration',
    metadata: {
      redirect_uris: ['http://localhost:6274/oauth/callback/debug'],
      ...PUBLIC,
      client_name: 'MCP Inspector',
      client_uri: 'https://github.com/modelcontextprotocol/inspector',
      scope: '',
      application_type: 'native',
    },
    scope: null,
    redirectUri: 'http://localhost:6274/oauth/callback/debug',
    refreshHasResource: true,
  },
];

/** Registrations that are refused, with the words of the refusal. */
export const refusedClients: { name: string; metadata: Record<string, unknown>; refusal: RegExp }[] = [
  {
    name: 'a redirect to another host without TLS',
    metadata: { client_name: 'Foreign', redirect_uris: ['http://attacker.example/callback'], ...PUBLIC },
    refusal: /"http:\/\/attacker\.example\/callback" is refused: http is allowed to localhost/,
  },
  {
    name: 'a redirect that is a script',
    metadata: { client_name: 'Script', redirect_uris: ['https://good.example/cb', 'javascript:alert(1)'], ...PUBLIC },
    refusal: /"javascript:alert\(1\)" is refused: the scheme javascript: leads to no app/,
  },
  {
    name: 'no redirect addresses',
    metadata: { client_name: 'Nowhere', ...PUBLIC },
    refusal: /redirect_uris is missing or empty/,
  },
];

/** Registered, and yet it never gets the grant that it asks for: anybody can register. */
export const machineClient = {
  name: 'a machine without a person',
  metadata: {
    client_name: 'Machine',
    redirect_uris: ['https://machine.example/callback'],
    grant_types: ['client_credentials'],
    response_types: [],
    token_endpoint_auth_method: 'client_secret_basic',
  },
};
