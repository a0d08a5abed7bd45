import type { Requirement } from '../requirements.js';

/** Programs that log in by URL, as they are published. */
export const loginPrograms = {
  'login:programs:mcp-remote': {
    source: 'Field',
    behavior:
      '`mcp-remote` with the URL of a connection, a namespace or a run endpoint and no header logs in through the browser and calls tools; after `/me/access` ended it, its next call waits for a new login.',
  },
  'login:programs:sdk': {
    source: 'Field',
    behavior:
      'The OAuth clients of the MCP SDK, versions 1 and 2, log in through the browser at both revisions of an endpoint, refresh an expired token by themselves, and send their user to the browser again after the access ended.',
  },
  'login:programs:inspector': {
    source: 'Field',
    behavior:
      'A web page of another loopback origin discovers, registers, exchanges codes and calls MCP while the service is local only, with a preflight for each, as MCP Inspector does.',
  },
  'login:programs:cors': {
    source: 'House',
    behavior:
      'With a published `PUBLIC_URL` every origin reads metadata, registers and exchanges codes, and calls MCP only if `CORS_ORIGINS` lists it.',
  },
  'login:programs:https': {
    source: 'House',
    behavior:
      'Behind a TLS front with an https `PUBLIC_URL` the metadata name https addresses, a person logs in with a browser, and cookies are `Secure`, that of the session with `__Host-`.',
  },
  'login:off': {
    source: 'House',
    behavior:
      'Without an https `PUBLIC_URL` that has no path, a service that others reach starts without authorization server, logs the reason in one line, and takes API keys as before.',
  },
  'doctor:login': {
    source: 'House',
    behavior:
      '`slipway doctor` says whether MCP clients can log in by URL, and if not, why; it warns of namespaces whose short form is shadowed by a path of the service, and says what to use instead.',
    isLong: true,
  },
} as const satisfies Record<string, Requirement>;
