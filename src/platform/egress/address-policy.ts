import { isIP, isIPv4, isIPv6 } from 'node:net';
import { domainToASCII } from 'node:url';
import ipaddr from 'ipaddr.js';

export interface HostPattern {
  /** Rule for a host, whose `name` can be an address, IPv6 in brackets. */
  host: HostRule;
  /** Null without a port. */
  port: number | null;
}

const PARTS = /^(\[[0-9a-f:.]+\]|[^:[\]/@?#\\\s]+)(?::([1-9]\d{0,4}))?$/i;

/** Class of an address, as messages name it. Only `public` addresses are open without a rule. */
export type AddressKind =
  | 'public'
  | 'loopback'
  | 'private'
  | 'unique local'
  | 'carrier-grade NAT'
  | 'link-local'
  | 'multicast'
  | 'broadcast'
  | 'unspecified'
  | 'cloud metadata'
  | 'NAT64'
  | '6to4'
  | 'Teredo'
  | 'reserved';

/** Opens every address of a range; `prefixBits` is 0–32 (IPv4) or 0–128 (IPv6), the full width for one address. */
export interface RangeRule {
  kind: 'range';
  network: ipaddr.IPv4 | ipaddr.IPv6;
  prefixBits: number;
}

/**
 * Lets a name resolve to internal addresses. `name` is lower-case ASCII; with `isWildcard` it matches the names under
 * it.
 */
export interface HostRule {
  kind: 'host';
  name: string;
  isWildcard: boolean;
}

export type AllowRule = RangeRule | HostRule;

/**
 * Metadata services of clouds, which return the machine's own credentials: AWS, Google, Azure and Oracle
 * (169.254.169.254), AWS container and pod roles (169.254.170.2, .23), Azure's wire server (a public-looking address),
 * Alibaba (inside 100.64/10), AWS and Google over IPv6.
 */
const METADATA_ADDRESSES = new Set(
  [
    ...['169.254.169.254', '169.254.170.2', '169.254.170.23', '168.63.129.16', '100.100.100.200'],
    ...['fd00:ec2::254', 'fd00:ec2::23', 'fd20:ce::254'],
  ].map((address) => ipaddr.parse(address).toString()),
);

/** Kinds of the ranges of `ipaddr.js`; any other range is `reserved`. */
const KIND_OF_RANGE = new Map<string, AddressKind>([
  ['unicast', 'public'],
  ['loopback', 'loopback'],
  ['private', 'private'],
  ['uniqueLocal', 'unique local'],
  ['carrierGradeNat', 'carrier-grade NAT'],
  ['linkLocal', 'link-local'],
  ['multicast', 'multicast'],
  ['broadcast', 'broadcast'],
  ['unspecified', 'unspecified'],
  ['rfc6052', 'NAT64'],
  ['6to4', '6to4'],
  ['teredo', 'Teredo'],
]);

/** Loopback is allowed only for an exact name: zones often contain a `localhost.<zone>` record. */
const HOST_RULE_KINDS: ReadonlySet<AddressKind> = new Set(['private', 'unique local', 'carrier-grade NAT']);

/** The allocated IPv6 space (2000::/3); unicast addresses outside it are unallocated. */
const GLOBAL_UNICAST = ipaddr.parseCIDR('2000::/3');

const HOST_LABEL = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/;

/**
 * A last label that the WHATWG URL parser would read as an IPv4 number, so that a request for such a name is
 * impossible.
 */
const NUMERIC_LABEL = /^(\d+|0x[0-9a-f]*)$/;

/**
 * A range rule opens its addresses for every name. A host rule lets that name resolve to private, unique local and
 * carrier-grade NAT addresses, and to loopback if it is not a wildcard. Cloud metadata addresses open only when listed
 * as a single address: a wide range or an internal name must not hand out the machine's credentials by accident. For an
 * IPv4 address inside IPv6 (mapped, compatible) the IPv4 address decides; behind NAT64, 6to4 and Teredo both must be
 * allowed.
 */
export class AddressPolicy {
  /** @param closed classes that no rule opens */
  constructor(
    private readonly allow: AllowRule[],
    private readonly closed: ReadonlySet<AddressKind> = new Set(),
  ) {}

  /**
   * Returns true for an allowed address. `hostname` is the host of the URL, compared without case and trailing dot. Anything but a plain IPv4 or IPv6
   * address is false.
   */
  allows(address: string, hostname: string): boolean {
    const parsed = parseAddress(address);
    return parsed !== undefined && this.permits(parsed, bareHost(hostname));
  }

  /**
   * Returns true if a rule opens `address`: public ones in a listed range, and others only if {@link allows} is true.
   */
  lists(address: string, hostname: string): boolean {
    const parsed = parseAddress(address);
    return parsed !== undefined && this.isListed(parsed, bareHost(hostname));
  }

  private permits(address: ipaddr.IPv4 | ipaddr.IPv6, host: string): boolean {
    return kindOf(address) === 'public' || this.isListed(address, host);
  }

  private isListed(address: ipaddr.IPv4 | ipaddr.IPv6, host: string): boolean {
    const kind = kindOf(address);
    if (this.closed.has(kind)) return false;
    const ranges = this.allow
      .filter((rule) => rule.kind === 'range')
      .filter(({ network, prefixBits }) => network.kind() === address.kind() && address.match(network, prefixBits));
    if (kind === 'cloud metadata') return ranges.some((rule) => rule.prefixBits === widthBits(rule.network));
    if (ranges.length > 0) {
      const carried = carriedAddress(address, kind);
      return carried === undefined || this.permits(carried, host);
    }
    return this.allow.some(
      (rule) =>
        rule.kind === 'host' &&
        namesHost(rule, host) &&
        (HOST_RULE_KINDS.has(kind) || (kind === 'loopback' && !rule.isWildcard)),
    );
  }
}

/** Returns the canonical form of an address: IPv4 mapped into IPv6 as IPv4. Other strings are unchanged. */
export function canonicalAddress(address: string): string {
  return parseAddress(address)?.toString() ?? address;
}

/** Returns the kind of an address. IPv4 mapped into IPv6 is treated as IPv4, and anything else than an address is `reserved`. */
export function addressKind(address: string): AddressKind {
  const parsed = parseAddress(address);
  return parsed === undefined ? 'reserved' : kindOf(parsed);
}

/**
 * Reads EGRESS_ALLOW or HOSTING_EGRESS_ALLOW: entries separated by commas, each a CIDR, a single address, a host name
 * (`git.corp.example`), the names under one (`*.corp.example`) or the word `loopback`. An empty string gives no rules.
 *
 * Throws an Error that names the first invalid entry. Ambiguous entries such as `010.0.0.1`, `127.1` and `10.0.0.7/8`
 * are rejected, since a wrong reading would open too much.
 */
export function parseEgressAllow(text: string, setting = 'EGRESS_ALLOW'): AllowRule[] {
  const entries = text.split(',').map((entry) => entry.trim());
  try {
    return entries
      .filter((entry) => entry !== '')
      .flatMap((entry): AllowRule[] => {
        if (entry.toLowerCase() === 'loopback') return ['127.0.0.0/8', '::1'].map(parseRange);
        if (entry.includes('/') || isIP(entry) !== 0) return [parseRange(entry)];
        const rule = readHostRule(entry);
        if (rule) return [rule];
        throw badEntry(entry, 'is neither a CIDR, an address, a host name, a name like *.corp.example, nor loopback');
      });
  } catch (error) {
    throw new Error(`${setting}: ${(error as Error).message}`, { cause: error });
  }
}

function parseRange(entry: string): RangeRule {
  const [address = '', bits, ...rest] = entry.split('/');
  if (isIP(address) === 0 || address.includes('%') || rest.length > 0) throw badEntry(entry, 'is not a CIDR');
  const network = ipaddr.parse(address);
  const prefixBits = bits === undefined ? widthBits(network) : Number(bits);
  if ((bits !== undefined && !/^\d{1,3}$/.test(bits)) || prefixBits > widthBits(network)) {
    throw badEntry(entry, `needs a prefix length from 0 to ${widthBits(network)}`);
  }
  if (unwrap(network) !== network) throw badEntry(entry, 'wraps an IPv4 address; write the IPv4 address or range');
  const hasBitsAfter = network.toByteArray().some((byte, i) => {
    const prefixBitsOfByte = Math.min(Math.max(prefixBits - i * 8, 0), 8);
    return (byte & (0xff >> prefixBitsOfByte)) !== 0;
  });
  if (hasBitsAfter) {
    throw badEntry(entry, `has bits set after the prefix; write the first address of the range, or ${address} alone`);
  }
  return { kind: 'range', network, prefixBits };
}

/** Reads `git.corp.example` or `*.corp.example`; null when it is neither. */
export function readHostRule(entry: string): HostRule | null {
  const isWildcard = entry.startsWith('*.');
  const name = bareHost(domainToASCII(isWildcard ? entry.slice(2) : entry));
  const labels = name.split('.');
  const isName = name.length <= 253 && labels.every((label) => HOST_LABEL.test(label));
  return isName && !NUMERIC_LABEL.test(labels.at(-1) ?? '') ? { kind: 'host', name, isWildcard } : null;
}

function badEntry(entry: string, fault: string): Error {
  return new Error(`"${entry}" ${fault}.`);
}

/**
 * Parses an address. `isIP` goes first because `ipaddr.js` also reads octal, hex and short forms, which no resolver returns. A zone id
 * (`fe80::1%eth0`) is rejected: it would hide an address from the comparisons here.
 */
function parseAddress(address: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  return isIP(address) === 0 || address.includes('%') ? undefined : unwrap(ipaddr.parse(address));
}

function kindOf(address: ipaddr.IPv4 | ipaddr.IPv6): AddressKind {
  if (METADATA_ADDRESSES.has(address.toString())) return 'cloud metadata';
  const kind = KIND_OF_RANGE.get(address.range()) ?? 'reserved';
  const isForeign = kind === 'public' && address.kind() === 'ipv6' && !address.match(GLOBAL_UNICAST);
  return isForeign ? 'reserved' : kind;
}

/** Returns an address in the form in which rules of EGRESS_ALLOW name it. */
export function unwrapped(address: string): string {
  return unwrap(ipaddr.parse(address)).toString();
}

/** Returns the IPv4 address of an IPv4-mapped (::ffff:a.b.c.d) or IPv4-compatible (::a.b.c.d) one, else the address itself. */
function unwrap(address: ipaddr.IPv4 | ipaddr.IPv6): ipaddr.IPv4 | ipaddr.IPv6 {
  if (address.kind() === 'ipv4') return address;
  const bytes = address.toByteArray();
  const isMapped = bytes.slice(0, 12).every((byte, i) => byte === (i < 10 ? 0 : 0xff));
  const isCompatible = bytes.slice(0, 12).every((byte) => byte === 0) && !['::', '::1'].includes(address.toString());
  return isMapped || isCompatible ? new ipaddr.IPv4(bytes.slice(12)) : address;
}

/**
 * Returns the IPv4 address that a translator or tunnel would deliver to: RFC 6052 (last 32 bits), RFC 3056 (bits 16–48), RFC 4380
 * (inverted).
 */
function carriedAddress(address: ipaddr.IPv4 | ipaddr.IPv6, kind: AddressKind): ipaddr.IPv4 | undefined {
  const bytes = address.toByteArray();
  if (kind === 'NAT64') return new ipaddr.IPv4(bytes.slice(12));
  if (kind === '6to4') return new ipaddr.IPv4(bytes.slice(2, 6));
  if (kind === 'Teredo') return new ipaddr.IPv4(bytes.slice(12).map((byte) => byte ^ 0xff));
  return undefined;
}

/** Returns true if the rule contains the name, compared without case and trailing dot. */
export function namesHost(rule: HostRule, hostname: string): boolean {
  const host = bareHost(hostname);
  return rule.isWildcard ? host.endsWith(`.${rule.name}`) : host === rule.name;
}

function widthBits(address: ipaddr.IPv4 | ipaddr.IPv6): number {
  return address.kind() === 'ipv4' ? 32 : 128;
}

function bareHost(hostname: string): string {
  const lower = hostname.toLowerCase();
  return lower.endsWith('.') ? lower.slice(0, -1) : lower;
}

/**
 * Reads `api.example.com`, `*.example.com` (the names under it, not itself), an IPv4 address or an IPv6 address in
 * brackets, each with or without `:port`; otherwise null.
 */
export function parseHostPattern(text: string): HostPattern | null {
  const [, host, digits] = PARTS.exec(text) ?? [];
  if (host === undefined) return null;
  const port = digits === undefined ? null : Number(digits);
  const isAddress = isIPv4(host) || (host.startsWith('[') && isIPv6(host.slice(1, -1)));
  // Addresses are spelled as in URLs.
  const rule: HostRule | null = isAddress
    ? { kind: 'host', name: new URL(`http://${host}`).hostname, isWildcard: false }
    : readHostRule(host);
  return rule === null || (port ?? 0) > 65_535 ? null : { host: rule, port };
}

/** Returns the port of a URL, by default that of the scheme. */
export function portOf(url: URL): number {
  if (url.port !== '') return Number(url.port);
  return url.protocol === 'https:' ? 443 : 80;
}
