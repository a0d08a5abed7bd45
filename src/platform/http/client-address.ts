import type { IncomingHttpHeaders } from 'node:http';
import { isIP, type BlockList } from 'node:net';
import ipaddr from 'ipaddr.js';

export interface RequestOrigin {
  socket: { remoteAddress?: string };
  headers: IncomingHttpHeaders;
}

/**
 * Returns the address for limits and logs. `X-Forwarded-For` is used only if a trusted proxy wrote it: its addresses are read
 * from the last one, each added by the proxy before it, up to the first that is not a trusted proxy.
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

/** Returns the key of one client for limits: a client owns the complete /64 network of an IPv6 address. */
export function peerOf(address: string): string {
  if (isIP(address) !== 6) return address;
  return ipaddr.IPv6.parse(address).parts.slice(0, 4).join(':');
}

/** Returns the /48 of IPv6, which one customer can own entirely. */
export function networkOf(peer: string): string {
  return peer.split(':', 3).join(':');
}

/** Returns an address without its zone, as IPv4 if IPv6 only wraps it. */
export function plainAddress(address: string): string {
  const bare = address.replace(/%.*$/, '');
  return bare.startsWith('::ffff:') && isIP(bare.slice(7)) === 4 ? bare.slice(7) : bare;
}
