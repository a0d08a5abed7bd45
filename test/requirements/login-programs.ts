/** Programs that log in by URL, as they are published. */
export const loginPrograms = [
  'login:programs:mcp-remote | Field | `mcp-remote` with the URL of a connection, a namespace or a run endpoint and no header logs in through the browser and calls tools; after `/me/access` ended it, its next call waits for a new login.',
  'login:programs:sdk | Field | The OAuth clients of the MCP SDK, versions 1 and 2, log in through the browser at both revisions of an endpoint, refresh an expired token by themselves, and send their user to the browser again after the access ended.',
  'login:programs:inspector | Field | A web page of another loopback origin discovers, registers, exchanges codes and calls MCP while the service is local only, with a preflight for each, as MCP Inspector does.',
];
