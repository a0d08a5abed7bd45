import type { Requirement } from '../requirements.js';

/** Programs that log in by URL, as they are published. */
export const loginPrograms = {
  'login:programs:mcp-remote': {
    source: 'Field',
    behavior:
      '`mcp-remote` with the URL of a connection or a run endpoint and no header logs in through the browser and calls tools; after `/me/access` ended it, its next call waits for a new login.',
  },
  'login:programs:sdk': {
    source: 'Field',
    behavior:
      'The OAuth clients of the MCP SDK, versions 1 and 2, log in through the browser at both revisions of an endpoint, refresh an expired token by themselves, and send their user to the browser again after the access ended.',
  },
} as const satisfies Record<string, Requirement>;
