/** Hop-by-hop headers (RFC 9110 section 7.6.1) and headers for proxies are never forwarded. */
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
 * Returns a test for hop-by-hop headers, by lower-case names.
 *
 * @param connection the message's own `Connection` header, which can name more headers
 */
export function hopByHopOf(connection: string | string[] | undefined): (name: string) => boolean {
  if (connection === undefined) return (name) => HOP_BY_HOP.has(name);
  const listed = new Set(
    String(connection)
      .split(',')
      .map((name) => name.trim().toLowerCase()),
  );
  return (name) => HOP_BY_HOP.has(name) || listed.has(name);
}
