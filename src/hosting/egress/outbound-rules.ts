import { namesHost, parseHostPattern, portOf, type HostPattern } from '../../platform/egress/address-policy.js';
import { OutboundError } from './outbound.errors.js';

/** `http`: an HTTP request, WebSocket included. `tcp`: raw bytes. */
export type OutboundKind = 'http' | 'tcp';

/** Always closed: machines that send mail lose their reputation as senders. */
const MAIL_PORT = 25;

const WEB_PORTS = new Set([80, 443]);

/** Ports below belong to system services (SSH, SMB, …), which accept HTTP requests only if listed. */
const FREE_PORT_MIN = 1_024;

/** DNS over HTTPS host used by `node:dns` in workerd, which has no other resolver. */
const DNS_HOST = 'cloudflare-dns.com';

/**
 * Rules by name; addresses are checked when sockets are opened. Without a list every host is open, otherwise only
 * listed ones. HTTP may use the ports 80, 443 and from 1024, raw TCP 80 and 443; other ports must be listed
 * (`db.example.com:5432`). Port 25 is always closed.
 */
export class OutboundRules {
  private readonly patterns: HostPattern[] | null;

  /** @param allow patterns; other entries are ignored */
  constructor(allow: string[] | null) {
    this.patterns = allow && allow.map(parseHostPattern).filter((pattern) => pattern !== null);
  }

  namesWithPort(url: URL): boolean {
    const port = portOf(url);
    return this.patterns?.some((pattern) => pattern.port === port && namesHost(pattern.host, url.hostname)) ?? false;
  }

  /** @throws OutboundError (403) */
  requireAllowed(url: URL, kind: OutboundKind): void {
    const port = portOf(url);
    if (port === MAIL_PORT) {
      throw new OutboundError(403, 'Port 25 is closed to hosted code: send mail through the API of a mail service.');
    }
    const matches = this.patterns?.filter((pattern) => namesHost(pattern.host, url.hostname)) ?? null;
    if (matches?.some((pattern) => pattern.port === port)) return;
    const { hostname } = url;
    if (matches && matches.every((pattern) => pattern.port !== null)) {
      const hint = hostname === DNS_HOST ? ' node:dns asks this host for addresses.' : '';
      throw new OutboundError(
        403,
        `The host "${hostname}:${port}" is not among those this server may reach.${hint} Its owner can add "${hostname}" or ` +
          `"${hostname}:${port}" to egressAllow with PATCH /servers/{qualifiedName}/runtime.`,
      );
    }
    if (WEB_PORTS.has(port) || (kind === 'http' && port >= FREE_PORT_MIN)) return;
    const open =
      kind === 'http' ? 'requests reach the ports 80, 443 and from 1024' : 'raw connections reach 80 and 443';
    throw new OutboundError(
      403,
      `Port ${port} of "${hostname}" is closed to hosted code: ${open}. The server's owner can add "${hostname}:${port}" to ` +
        'egressAllow with PATCH /servers/{qualifiedName}/runtime, which then lists all the hosts it may reach.',
    );
  }
}
