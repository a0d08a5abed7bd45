import { AddressPolicy } from '../../platform/egress/address-policy.js';
import { Egress, type ResolveHost } from '../../platform/egress/egress.js';
import { openProgramProxy, type ProgramProxyOptions, type ProxyPlace } from './program-proxy.js';
import { PROXY_LIMITS } from './proxy-limits.js';
import type { LookupAddress } from 'node:dns';
import { Resolver } from 'node:dns/promises';

/** With 2 attempts, a name whose servers are silent is given up after about 4 s. */
const ATTEMPT_MS = 1_300;

const ATTEMPTS = 2;

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

/**
 * Asks the name servers of this machine, IPv4 first. Not `dns.lookup`: that holds one of the process's four threads for
 * files and names as long as it takes, so code that asks for names with silent servers would stop everybody. The
 * machine's own hosts file is not read; its names mean nothing to hosted code.
 */
function publicNames(): ResolveHost {
  const resolver = new Resolver({ timeout: ATTEMPT_MS, tries: ATTEMPTS });
  return (hostname, _options, callback) => {
    void Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]).then(([v4, v6]) => {
      const found: LookupAddress[] = [...addresses(v4, 4), ...addresses(v6, 6)];
      if (found.length > 0) return callback(null, found);
      callback(v4.status === 'rejected' ? (v4.reason as NodeJS.ErrnoException) : null, []);
    });
  };
}

function addresses(outcome: PromiseSettledResult<string[]>, family: 4 | 6): LookupAddress[] {
  return outcome.status === 'fulfilled' ? outcome.value.map((address) => ({ address, family })) : [];
}
