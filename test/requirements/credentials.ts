import type { Requirement } from '../requirements.js';

/** OAuth towards upstreams: how Slipway is authorized at an MCP server, and stays so. */
export const credentials = {
  'oauth:flow': {
    source: 'House',
    behavior:
      'From a setup link a person authorizes Slipway at the authorization server of an MCP server, and Slipway holds a token for it.',
  },
  'oauth:discovery': {
    source: 'Field',
    behavior:
      'The authorization server is found by the challenge, by both well-known addresses, or at the MCP server itself.',
  },
  'oauth:pkce': {
    source: 'Field',
    behavior: 'Without announced PKCE S256 an authorization server is refused, unless its issuer is listed.',
  },
  'oauth:resource': {
    source: 'Field',
    behavior:
      'The announced resource is sent byte for byte when authorizing, exchanging and refreshing; that of another server is refused.',
  },
  'oauth:scopes': {
    source: 'Field',
    behavior:
      'The scopes of a challenge are asked for before those of the metadata, and a step up keeps what was granted.',
  },
  'oauth:registration': {
    source: 'Field',
    behavior: 'Slipway registers once at an authorization server, and the reason of a refusal is told.',
  },
  'oauth:client-document': {
    source: 'Field',
    behavior: 'Behind https, an authorization server that reads client metadata documents is used without registering.',
  },
  'oauth:iss': {
    source: 'Field',
    behavior: 'An answer that is not from the recorded issuer is thrown away, and its text is not shown.',
  },
  'oauth:state': {
    source: 'House',
    behavior: 'The state of an authorization works once and for ten minutes.',
  },
  'oauth:link': {
    source: 'House',
    behavior: 'A setup link opens nothing once it is used, expired or unknown, and says so in a page.',
  },
  'oauth:browser': {
    source: 'House',
    behavior: 'Only the browser that pressed the button of a setup page completes its authorization.',
  },
  'oauth:page': {
    source: 'House',
    behavior:
      'The setup page names server, host, authorization server and scopes, works by keyboard, and cannot be framed.',
  },
  'oauth:restart': {
    source: 'House',
    behavior: 'An authorization that was begun before a restart is completed after it.',
  },
  'oauth:refresh': {
    source: 'House',
    behavior: 'A token is renewed before it ends, and when the MCP server refuses it.',
  },
  'oauth:single-refresh': {
    source: 'House',
    behavior: 'However many callers in however many processes need a new token, exactly one refresh is sent.',
  },
  'oauth:crash': {
    source: 'House',
    behavior: 'A process that dies during a refresh leaves the credential usable or honestly in need of authorization.',
  },
  'oauth:outage': {
    source: 'House',
    behavior:
      'While the authorization server is away, tokens are kept, it is asked ever less often, and nobody is asked to authorize.',
  },
  'oauth:revoked': {
    source: 'House',
    behavior: 'A refresh that is refused for good drops the tokens and asks for a new authorization.',
  },
  'oauth:client-lost': {
    source: 'House',
    behavior: 'An authorization server that forgot Slipway is registered at once more, at the next authorization.',
  },
  'oauth:secrets': {
    source: 'House',
    behavior: 'Tokens, client secrets, verifiers, states and links stand in clear in no table, log line or error.',
  },
  'oauth:owner-gone': {
    source: 'House',
    behavior: 'Credentials and setup links go with the server or connection they belong to.',
  },
  'oauth:remove': {
    source: 'House',
    behavior: 'Removing a credential revokes its tokens at the authorization server.',
  },
  'oauth:egress': {
    source: 'House',
    behavior: 'No address in OAuth metadata is dialled that a connection could not be dialled at.',
  },
  'oauth:adapter': {
    source: 'Field',
    behavior:
      'A connection to a hosted server with an auth adapter wants authorization, its page leads where the adapter says, and calls carry the token the adapter gave.',
  },
  'oauth:adapter-run': {
    source: 'House',
    behavior:
      'At its run endpoint a hosted server with an auth adapter tells everybody what it offers; calls, which would know of nobody, are answered with the way to a connection.',
  },
  'oauth:adapter-refresh': {
    source: 'Field',
    behavior:
      'A token of an auth adapter is renewed by it when due, once for all and with the newest refresh token; what it refuses for good wants authorization again.',
  },
} as const satisfies Record<string, Requirement>;
