import { isIPv4, isIPv6 } from 'node:net';
import { namesHost, readHostRule, type HostRule } from './address-policy.js';

/** One host that may be asked for, or the names below one. */
export interface HostPattern {
  /** Its `name` is an address when one was given, IPv6 in brackets. */
  host: HostRule;
  /** Null: no port is named. */
  port: number | null;
}

const PARTS = /^(\[[0-9a-f:.]+\]|[^:[\]/@?#\\\s]+)(?::([1-9]\d{0,4}))?$/i;

/**
 * Reads `api.example.com`, `*.example.com` (the names below it, not itself), an IPv4 address or an IPv6 address in brackets,
 * each with or without `:port`; null when the text is none of these.
 */
export function parseHostPattern(text: string): HostPattern | null {
  const [, host, digits] = PARTS.exec(text) ?? [];
  if (host === undefined) return null;
  const port = digits === undefined ? null : Number(digits);
  const rule = isAddress(host) ? addressRule(host) : readHostRule(host);
  return rule === null || (port ?? 0) > 65_535 ? null : { host: rule, port };
}

/** The port a URL means, its scheme's own when it names none. */
export function portOf(url: URL): number {
  if (url.port !== '') return Number(url.port);
  return url.protocol === 'https:' ? 443 : 80;
}

/** Whether the pattern stands for the URL's host, whatever the port. The name is compared, not what it resolves to. */
export function matchesHost(pattern: HostPattern, url: URL): boolean {
  return namesHost(pattern.host, url.hostname);
}

function isAddress(host: string): boolean {
  return isIPv4(host) || (host.startsWith('[') && isIPv6(host.slice(1, -1)));
}

/** Written as URLs write it. */
function addressRule(host: string): HostRule {
  return { kind: 'host', name: new URL(`http://${host}`).hostname, isWildcard: false };
}
