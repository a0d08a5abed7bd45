import { matchesHost, parseHostPattern, portOf, type HostPattern } from '../../platform/egress/address-policy.js';
import { OutboundDeniedError } from './outbound.errors.js';

/** `http`: an HTTP request, WebSocket included. `tcp`: bytes as they are. */
export type OutboundKind = 'http' | 'tcp';

/** Mail is what machines that send it lose their good name for. */
const MAIL_PORT = 25;

const WEB_PORTS = new Set([80, 443]);

/** Below are the services of systems (SSH, SMB, …), which must not be spoken to in HTTP unless somebody means it. */
const FREE_PORT_MIN = 1_024;

/** Asked by `node:dns`, which has no other way to a name. */
const DNS_HOST = 'cloudflare-dns.com';

/**
 * Where one program may go, by the name it asks for; whether the name's addresses are public is judged where sockets are
 * opened. Without a list every host is open; with one only what it names. HTTP may use the ports 80, 443 and those from
 * 1024, raw TCP 80 and 443; any other port must stand in the list (`db.example.com:5432`). Port 25 is never open.
 */
export class OutboundRules {
  private readonly patterns: HostPattern[] | null;

  /** Entries that are no patterns open nothing. */
  constructor(allow: string[] | null) {
    this.patterns = allow && allow.map(parseHostPattern).filter((pattern) => pattern !== null);
  }

  /** @throws OutboundDeniedError */
  judge(url: URL, kind: OutboundKind): void {
    const port = portOf(url);
    if (port === MAIL_PORT) {
      throw new OutboundDeniedError('Port 25 is closed to hosted code: send mail through the API of a mail service.');
    }
    const named = this.patterns?.filter((pattern) => matchesHost(pattern, url)) ?? null;
    if (named?.some((pattern) => pattern.port === port)) return;
    if (named && named.every((pattern) => pattern.port !== null)) throw unlisted(url, port);
    if (!isOpen(port, kind)) throw closedPort(url, port, kind);
  }
}

function isOpen(port: number, kind: OutboundKind): boolean {
  return WEB_PORTS.has(port) || (kind === 'http' && port >= FREE_PORT_MIN);
}

function unlisted({ hostname }: URL, port: number): OutboundDeniedError {
  const why = hostname === DNS_HOST ? ' node:dns asks this host for addresses.' : '';
  return new OutboundDeniedError(
    `The host "${hostname}:${port}" is not among those this server may reach.${why} Its owner can add "${hostname}" or ` +
      `"${hostname}:${port}" to egressAllow with PATCH /servers/{qualifiedName}/runtime.`,
  );
}

function closedPort({ hostname }: URL, port: number, kind: OutboundKind): OutboundDeniedError {
  const open = kind === 'http' ? 'requests reach the ports 80, 443 and from 1024' : 'raw connections reach 80 and 443';
  return new OutboundDeniedError(
    `Port ${port} of "${hostname}" is closed to hosted code: ${open}. The server's owner can add "${hostname}:${port}" to ` +
      'egressAllow with PATCH /servers/{qualifiedName}/runtime, which then lists all the hosts it may reach.',
  );
}
