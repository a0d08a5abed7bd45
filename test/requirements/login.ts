import type { Requirement } from '../requirements.js';

/** Logins of MCP clients by URL: the OAuth authorization server, its tokens, and the pages on which people decide. */
export const login = {
  'login:url': {
    source: 'House',
    behavior:
      'A client that knows only the address of an MCP endpoint registers, asks a person in the browser, gets tokens, calls, refreshes and logs out.',
  },
  'login:clients': {
    source: 'Field',
    behavior:
      'The registrations and client documents of 13 MCP clients pass the whole login; four wrong ones are refused in words.',
  },
  'login:resource-document': {
    source: 'Field',
    behavior:
      'The protected resource metadata of an MCP endpoint repeat its address exactly as it was asked for, name the issuer without a trailing slash, and list the scope `mcp`.',
  },
  'login:metadata': {
    source: 'Field',
    behavior:
      'The authorization server metadata stand at both well-known addresses, list codes, refresh tokens and S256 alone, and every other well-known address answers JSON 404.',
  },
  'login:challenge': {
    source: 'Field',
    behavior:
      'An MCP endpoint answers every method without a credential with 401, `resource_metadata` and `scope`, and the preflight of a page that may use it with 204.',
  },
  'login:cors': {
    source: 'Field',
    behavior:
      'Pages of every origin may read metadata, registrations, tokens and revocations, without cookies, and never the authorization endpoint.',
  },
  'login:scopes': {
    source: 'Field',
    behavior:
      'The server offers `mcp` and `offline_access`; other scopes are ignored at registration and authorization, and none at all counts as `mcp`.',
  },
  'login:refresh': {
    source: 'Field',
    behavior: 'Every token answer has a refresh token, whether `offline_access` was asked for or not.',
  },
  'login:lifetime': {
    source: 'House',
    behavior: 'An access token lives 24 hours, or `OAUTH_TOKEN_HOURS`, and is opaque.',
  },
  'login:resource': {
    source: 'Field',
    behavior:
      'A login is for one MCP endpoint of this service: any other resource, none, and more than one are refused with `invalid_target` in words; one trailing slash is the same; the token endpoint needs none.',
  },
  'login:registration': {
    source: 'House',
    behavior:
      'An address registers 100 clients in an hour that no person has allowed anything; the next answers 429 with Retry-After in the form of OAuth, until one of them is allowed.',
  },
  'login:registration-answer': {
    source: 'Field',
    behavior:
      'A registration accepts the methods `none`, `client_secret_post` and `client_secret_basic` and answers 201 without a member that is null.',
  },
  'login:client-documents': {
    source: 'Field',
    behavior:
      'A client id metadata document is read over https on port 443 without redirects, with at most 64 KB in 5 s; its last good copy is used when that fails.',
  },
  'login:consent-page': {
    source: 'House',
    behavior:
      'The consent page names the client as verified by its host or as unverified, the endpoint in words, the host that the answer goes to, and the person; only its form decides.',
  },
  'login:remembered': {
    source: 'House',
    behavior:
      'A decision is remembered for one client, exact https address, endpoint and person; never with `prompt`, never for other addresses, and not after the client names other redirect addresses.',
  },
  'login:code-not-redeemed': {
    source: 'House',
    behavior: 'A code that no client redeems within 60 s is logged once, with the name of the client.',
  },
  'login:redirect': {
    source: 'House',
    behavior:
      'An answer goes to a registered redirect address by its query and nowhere else: an error about it is a page. `next` of the sign-in leads to pages of ours below `/consent/`, `/me` and `/setup/` and nowhere else.',
  },
  'login:issuer': {
    source: 'House',
    behavior: 'Every authorization answer carries `iss` and `state`, errors too (RFC 9207).',
  },
  'login:code-once': {
    source: 'House',
    behavior:
      'A code works once, for its client and its redirect address, also for uses at the same moment; a second use ends the login.',
  },
  'login:pkce': {
    source: 'House',
    behavior: 'A code needs the verifier of its challenge by S256; `plain` is refused.',
  },
  'login:token': {
    source: 'House',
    behavior:
      'An access token opens the MCP methods of its endpoint: every other endpoint, REST, paths below a run endpoint and tunnels answer 401, and pages do not know it.',
  },
  'login:csrf': {
    source: 'House',
    behavior:
      'The consent form decides nothing without the token of its browser, from another site, in another browser, or by a GET.',
  },
  'login:framing': {
    source: 'House',
    behavior: 'The pages of a login show in no frame, run no script and are not stored.',
  },
  'login:fixation': {
    source: 'House',
    behavior:
      'Each sign-in makes a new secret and session id and ends the session that the browser had, also during an authorization; a decision counts only for the account that saw the page.',
  },
  'login:enumeration': {
    source: 'House',
    behavior:
      'The 401, the metadata and the consent page of an endpoint that exists and of one that does not are identical for who may not use it.',
  },
  'login:host': {
    source: 'House',
    behavior:
      'Metadata, redirects and cookies follow PUBLIC_URL whatever `Host` and `X-Forwarded-…` say; over http the pages of a login refuse a foreign `Host`.',
  },
  'login:machine': {
    source: 'House',
    behavior:
      'A client that registered itself gets no token without a person, by no other grant and response type, and never an ID token.',
  },
  'login:bodies': {
    source: 'House',
    behavior:
      'Broken, huge and wrongly typed bodies of registration, token and revocation are answered with 400 or 413 in the form of OAuth.',
  },
  'login:document-askers': {
    source: 'House',
    behavior:
      'Documents of clients are fetched 30 times a minute for an address and 5 at once from a host; a refusal for that is not remembered.',
  },
  'login:document-egress': {
    source: 'House',
    behavior: 'A document of a client is not read from an internal host, also where `EGRESS_ALLOW` lists it.',
  },
  'login:slow-bodies': {
    source: 'House',
    behavior:
      'Bodies without a key that arrive slowly are charged by their bytes and given up with 408; sign-in and tokens of others are answered meanwhile.',
  },
  'login:grace': {
    source: 'Field',
    behavior: 'A used refresh token stays good for its client until its successor was used, and for 60 s more.',
  },
  'login:replay': {
    source: 'House',
    behavior:
      'A refresh token that is used after its grace ends the login, with a warning in the log, however long ago it was replaced.',
  },
  'login:branches': {
    source: 'House',
    behavior:
      'A refresh token has one successor: a repeated refresh answers with the same tokens, in every process, and a grant has at most six rows.',
  },
  'login:refresh-storm': {
    source: 'House',
    behavior:
      'Refreshes of one login from many programs at once answer 200 or, beyond 60 a minute, 429 with Retry-After, never 500, and leave at most six rows.',
  },
  'login:waiting': {
    source: 'House',
    behavior:
      'At most 100 authorizations of one client and address wait for their person, and the oldest give way; a state of more than 2,048 characters is refused.',
  },
  'login:grants-budget': {
    source: 'House',
    behavior:
      'An account has at most 20 logins that no client has used and 500 in all; the least recently used give way. `/me/access` shows 100 at a time.',
  },
  'login:roots': {
    source: 'House',
    behavior:
      'A login ends for good with the API key of the session that made it, revoked or expired, with a withdrawn grant, a changed password, a used invitation and a disabled account: what is given anew does not revive it.',
  },
  'login:storable': {
    source: 'House',
    behavior: 'A NUL in a client id or a resource is answered like an unknown one.',
  },
  'login:assertion-once': {
    source: 'House',
    behavior: 'An assertion of a client that is presented twice at the same moment is taken once.',
  },
  'login:two-connectors': {
    source: 'Field',
    behavior: 'The logins of one client to two endpoints are independent: a replay at one leaves the other alone.',
  },
  'login:two-logins': {
    source: 'Field',
    behavior: 'Two logins of one client to one endpoint refresh and end independently of each other.',
  },
  'login:revoke': {
    source: 'House',
    behavior:
      'A client revokes its own tokens, and a person ends their own logins at `/me/access`, and no others; either token ends the login.',
  },
  'login:ends': {
    source: 'House',
    behavior:
      'A login and its streams end within 5 s, in every process, with a revocation, at `/me/access`, with the deletion of its connection, namespace or server, with its account, with what was granted, and when its server becomes private.',
  },
  'login:renamed': {
    source: 'House',
    behavior:
      'A token follows its server to a new slug within 5 s, and does not open the server that takes the old slug.',
  },
  'login:processes': {
    source: 'House',
    behavior: 'Each step of a login may reach another process; a revocation at one counts in all within 5 s.',
  },
  'login:restart': { source: 'House', behavior: 'An authorization that waits for its person survives a restart.' },
  'login:sweep': {
    source: 'House',
    behavior:
      'Expired codes, tokens, authorizations and grants are removed, registrations that nobody allowed after a day, and clients that were not used for 90 days.',
  },
} as const satisfies Record<string, Requirement>;
