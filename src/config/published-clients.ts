/**
 * Words that published clients and modules of another service fix by its name. They must match exactly; none of them
 * leads to that service.
 */

/** Prefix of the MCP methods of the extension for triggers. */
export const EVENTS_EXTENSION = 'ai.smithery/events';

/** Session id for clients that do not know sessions. */
export const STATELESS_SESSION = 'smithery-stateless';

export const RESERVED_SEGMENT = '__smithery';

/** Headers in which callers cannot send configuration: credentials for Slipway, and headers that proxies set. */
export const RESERVED_HEADERS = {
  pattern: /^(?:authorization|cookie|cf-.*|smithery-.*)$/i,
  list: 'authorization, cookie, cf-* and smithery-*',
};

/** The command that pairs a local server, with `{url}` for the address of this service: without a variable, the program would call another service. */
export const PAIR_COMMAND =
  '`SMITHERY_BASE_URL={url} SMITHERY_CONNECT_BASE_URL={url} SMITHERY_UPLINK_BASE_URL={url} SMITHERY_URL={url} ' +
  'smithery mcp add --id <connectionId> -- <command>`, with a key of this service in SMITHERY_API_KEY';

/** Returns the complete {@link PAIR_COMMAND} for one connection. @param command starts the local server; null if it is not known */
export function pairCommandOf(
  url: string,
  { namespace, connectionId }: { namespace: string; connectionId: string },
  command: string | null,
): string {
  return `SMITHERY_BASE_URL=${url} SMITHERY_CONNECT_BASE_URL=${url} \\
SMITHERY_UPLINK_BASE_URL=${url} SMITHERY_URL=${url} \\
SMITHERY_API_KEY=$SLIPWAY_KEY \\
npx -y @smithery/cli@4.11.1 mcp add --id ${connectionId} --namespace ${namespace} -- \\
${command ?? 'COMMAND'}`;
}
