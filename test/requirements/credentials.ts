/** OAuth towards upstreams: how Slipway is authorized at an MCP server, and stays so. */
export const credentials = [
  'oauth:discovery | Field | The authorization server is discovered by the challenge, by both well-known addresses, or at the MCP server itself: by its metadata, or without any at `/authorize`, `/token` and `/register`, if `/token` answers as a token endpoint.',
  'oauth:pkce | Field | An authorization server whose metadata do not announce PKCE S256 is refused, unless its issuer is listed.',
  'oauth:resource | Field | The announced resource is sent byte for byte when authorizing, exchanging and refreshing; that of another server is refused.',
  'oauth:scopes | Field | Slipway requests the scopes of a challenge before those of the metadata, and a step-up keeps the granted scopes.',
  'oauth:registration | Field | Slipway registers once at an authorization server, and the error contains the reason of a refusal.',
  'oauth:client-document | Field | With an https base URL Slipway uses its client metadata document instead of registration where the authorization server supports it.',
  'oauth:iss | Field | A response that is not from the recorded issuer is discarded, and its text is not shown.',
  'oauth:adapter | Field | A connection to a hosted server with an auth adapter requires authorization, its setup page redirects to the URL of the adapter, and calls carry the token of the adapter.',
  'oauth:adapter-refresh | Field | An auth adapter refreshes its tokens when due, once for all processes and with the newest refresh token; a permanent refusal requires a new authorization.',
];
