/** Logins of MCP clients by URL: the OAuth authorization server, its tokens, and the pages on which people decide. */
export const login = [
  'login:clients | Field | The registrations and client documents of 13 MCP clients pass the whole login; four wrong ones are refused in words.',
  'login:resource-document | Field | The protected resource metadata of an MCP endpoint repeat its address exactly as it was asked for, name the issuer without a trailing slash, and list the scope `mcp`.',
  'login:metadata | Field | The authorization server metadata stand at both well-known addresses, list codes, refresh tokens and S256 alone, and every other well-known address answers JSON 404.',
  'login:challenge | Field | An MCP endpoint answers every method without a credential with 401, `resource_metadata` and `scope`, and the preflight of a page that may use it with 204.',
  'login:cors | Field | Pages of every origin may read metadata, registrations, tokens and revocations, without cookies, and never the authorization endpoint.',
  'login:scopes | Field | The server offers `mcp` and `offline_access`; other scopes are ignored at registration and authorization, and none at all counts as `mcp`.',
  'login:refresh | Field | Every token answer has a refresh token, whether `offline_access` was asked for or not.',
  'login:resource | Field | A login is for one MCP endpoint of this service: any other resource, none, and more than one are refused with `invalid_target` in words; one trailing slash is the same; the token endpoint needs none.',
  'login:registration-answer | Field | A registration accepts the methods `none`, `client_secret_post` and `client_secret_basic` and answers 201 without a member that is null.',
  'login:client-documents | Field | A client id metadata document is read over https on port 443 without redirects, with at most 64 KB in 5 s; its last good copy is used when that fails.',
  'login:grace | Field | A used refresh token stays good for its client until its successor was used, and for 60 s more.',
  'login:two-connectors | Field | The logins of one client to two endpoints are independent: a replay at one leaves the other alone.',
  'login:two-logins | Field | Two logins of one client to one endpoint refresh and end independently of each other.',
];
