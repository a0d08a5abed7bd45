/** They speak of one connection and end with it (RFC 9110 section 7.6.1), or speak to a proxy. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
]);

/**
 * Tells which headers of a message, by lower-case name, end with the connection it came by.
 *
 * @param connection the message's own `Connection` header, which may name more of them
 */
export function hopByHopOf(connection: string | string[] | undefined): (name: string) => boolean {
  // Most messages name nothing there; then no set is made.
  if (connection === undefined) return (name) => HOP_BY_HOP.has(name);
  const named = new Set(
    String(connection)
      .split(',')
      .map((name) => name.trim().toLowerCase()),
  );
  return (name) => HOP_BY_HOP.has(name) || named.has(name);
}
