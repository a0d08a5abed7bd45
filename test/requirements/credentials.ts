import type { Requirement } from '../requirements.js';

/** OAuth towards upstreams: how Slipway is authorized at an MCP server, and stays so. */
export const credentials = {
  'oauth:flow': {
    source: 'House',
    behavior:
      'A person follows a setup link and authorizes Slipway at the authorization server of an MCP server; Slipway stores a token, and a connection is `connected`.',
  },
  'oauth:discovery': {
    source: 'Field',
    behavior:
      'The authorization server is discovered by the challenge, by both well-known addresses, or at the MCP server itself: by its metadata, or without any at `/authorize`, `/token` and `/register`, if `/token` answers as a token endpoint.',
  },
  'oauth:pkce': {
    source: 'Field',
    behavior:
      'An authorization server whose metadata do not announce PKCE S256 is refused, unless its issuer is listed.',
  },
  'oauth:resource': {
    source: 'Field',
    behavior:
      'The announced resource is sent byte for byte when authorizing, exchanging and refreshing; that of another server is refused.',
  },
  'oauth:scopes': {
    source: 'Field',
    behavior:
      'Slipway requests the scopes of a challenge before those of the metadata, and a step-up keeps the granted scopes.',
  },
  'oauth:registration': {
    source: 'Field',
    behavior: 'Slipway registers once at an authorization server, and the error contains the reason of a refusal.',
  },
  'oauth:client-document': {
    source: 'Field',
    behavior:
      'With an https base URL Slipway uses its client metadata document instead of registration where the authorization server supports it.',
  },
  'oauth:iss': {
    source: 'Field',
    behavior: 'A response that is not from the recorded issuer is discarded, and its text is not shown.',
  },
  'oauth:state': {
    source: 'House',
    behavior: 'The state of an authorization works once and for ten minutes.',
  },
  'oauth:page': {
    source: 'House',
    behavior:
      'The setup page shows title, description and icon of the server, its host, authorization server and scopes, works with the keyboard, and cannot be framed.',
  },
  'oauth:restart': {
    source: 'House',
    behavior: 'An authorization that began before a restart completes after it.',
  },
  'oauth:refresh': {
    source: 'House',
    behavior: 'A token in use is refreshed before it expires, without a call, and when the MCP server refuses it.',
  },
  'oauth:single-refresh': {
    source: 'House',
    behavior: 'Concurrent callers in any number of processes cause exactly one refresh.',
  },
  'oauth:crash': {
    source: 'House',
    behavior:
      'A process that is killed during a refresh leaves the credential usable or in the state that requires authorization.',
  },
  'oauth:outage': {
    source: 'House',
    behavior:
      'While the authorization server cannot be reached, tokens are kept, retries back off, and no authorization is requested.',
  },
  'oauth:revoked': {
    source: 'House',
    behavior: 'A permanently refused refresh deletes the tokens and requires a new authorization.',
  },
  'oauth:client-lost': {
    source: 'House',
    behavior:
      'Slipway registers once again at an authorization server that no longer knows its client, at the next authorization.',
  },
  'oauth:secrets': {
    source: 'House',
    behavior: 'No table, log line or error contains tokens, client secrets, verifiers, states or links in clear text.',
  },
  'oauth:owner-gone': {
    source: 'House',
    behavior: 'Credentials and setup links are deleted with the server or connection that owns them.',
  },
  'oauth:remove': {
    source: 'House',
    behavior: 'Deleting a credential, its owner or the namespace revokes the tokens at the authorization server.',
  },
  'oauth:egress': {
    source: 'House',
    behavior: 'Addresses in OAuth metadata are subject to the egress rules of connections.',
  },
  'oauth:adapter': {
    source: 'Field',
    behavior:
      'A connection to a hosted server with an auth adapter requires authorization, its setup page redirects to the URL of the adapter, and calls carry the token of the adapter.',
  },
  'oauth:adapter-run': {
    source: 'House',
    behavior:
      'At its run endpoint a hosted server with an auth adapter lists its tools to every caller; a call, which would have no user, answers with the way to create a connection.',
  },
  'oauth:adapter-refresh': {
    source: 'Field',
    behavior:
      'An auth adapter refreshes its tokens when due, once for all processes and with the newest refresh token; a permanent refusal requires a new authorization.',
  },
} as const satisfies Record<string, Requirement>;
