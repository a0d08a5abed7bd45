import { AddressPolicy } from '../../platform/egress/address-policy.js';
import { Egress } from '../../platform/egress/egress.js';
import { openProgramProxy, type ProgramProxyOptions, type ProxyPlace } from './program-proxy.js';
import { PROXY_LIMITS } from './proxy-limits.js';
import { publicNames } from './public-names.js';

/** What a program's way out is given, and the end of it. */
export type EgressOptions = ProgramProxyOptions;

/** An open way out. */
export interface OpenEgress {
  /** Ends every socket now, and the proxy. Never rejects. */
  close(): Promise<void>;
}

/**
 * Opens the one way out of one running program: an HTTP proxy on a unix socket (a path of at most 107 bytes) or on a socket
 * that listens already, as workerd speaks to one (`globalOutbound` is `external` with `http = (style = proxy)`). Requests arrive in absolute form and in
 * clear, the proxy does TLS; CONNECT is for raw TCP. Only public addresses are dialled, whatever EGRESS_ALLOW says; what
 * `allow` adds to that is written at `OutboundRules`. Refusals are 403 with a sentence, and are `told`.
 *
 * @throws the error of `listen` when the socket cannot be made
 */
export function openEgress(place: ProxyPlace, options: EgressOptions): Promise<OpenEgress> {
  return openProgramProxy(place, options, new Egress(new AddressPolicy([]), publicNames()), PROXY_LIMITS);
}
