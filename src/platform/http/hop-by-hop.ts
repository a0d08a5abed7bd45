/** Hop-by-hop headers (RFC 9110 section 7.6.1) and headers for proxies: never forwarded. */
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
 * Returns a predicate for the headers of a message, by lower-case name, that must not be forwarded.
 *
 * @param connection the message's own `Connection` header, which can name more of them
 */
export function hopByHopOf(connection: string | string[] | undefined): (name: string) => boolean {
  // Most messages name none; then no set is created.
  if (connection === undefined) return (name) => HOP_BY_HOP.has(name);
  const listed = new Set(
    String(connection)
      .split(',')
      .map((name) => name.trim().toLowerCase()),
  );
  return (name) => HOP_BY_HOP.has(name) || listed.has(name);
}
