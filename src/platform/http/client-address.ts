import type { IncomingHttpHeaders } from 'node:http';
import { isIP, type BlockList } from 'node:net';
import ipaddr from 'ipaddr.js';

/** The parts of a request that show its origin. */
export interface RequestOrigin {
  socket: { remoteAddress?: string };
  headers: IncomingHttpHeaders;
}

/**
 * Address of the client that sent a request, for limits and logs. `X-Forwarded-For` is used only if a trusted proxy
 * wrote it: its addresses are read from the last one, each added by the proxy before it, up to the first that is not a
 * trusted proxy.
 *
 * @param proxies `TRUST_PROXY`; null for none
 */
export function clientAddress({ socket, headers }: RequestOrigin, proxies: BlockList | null): string {
  let address = plainAddress(socket.remoteAddress ?? '');
  if (!proxies) return address;
  const hops = String(headers['x-forwarded-for'] ?? '').split(',');
  while (isTrusted(address, proxies)) {
    const next = plainAddress((hops.pop() ?? '').trim().replace(/^\[(.*)\](?::\d+)?$|^([\d.]+):\d+$/, '$1$2'));
    if (isIP(next) === 0) break;
    address = next;
  }
  return address;
}

export function isTrusted(address: string, proxies: BlockList | null): boolean {
  const version = isIP(address);
  return proxies !== null && version !== 0 && proxies.check(address, version === 4 ? 'ipv4' : 'ipv6');
}

/** Key for limits of one client: the address, or the /64 network of an IPv6 address, which one client owns entirely. */
export function peerOf(address: string): string {
  if (isIP(address) !== 6) return address;
  return ipaddr.IPv6.parse(address).parts.slice(0, 4).join(':');
}

/** The network of a {@link peerOf}: for IPv6 the /48, which one customer can own entirely. */
export function networkOf(peer: string): string {
  return peer.split(':', 3).join(':');
}

/** An address without its zone, as IPv4 if IPv6 only wraps it. */
export function plainAddress(address: string): string {
  const bare = address.replace(/%.*$/, '');
  return bare.startsWith('::ffff:') && isIP(bare.slice(7)) === 4 ? bare.slice(7) : bare;
}
