import { AddressPolicy } from '../../platform/egress/address-policy.js';
import { Egress, type ResolveHost } from '../../platform/egress/egress.js';
import type { InternalRoutes } from './internal-routes.js';
import { ProgramProxy, type ProgramProxyOptions, type ProxyPlace } from './program-proxy.js';
import { PROXY_LIMITS } from './proxy-limits.js';
import type { LookupAddress } from 'node:dns';
import { Resolver } from 'node:dns/promises';

/** DNS timeout. With 2 attempts, a name with silent servers fails after about 4 s. */
const ATTEMPT_MS = 1_300;

const ATTEMPTS = 2;

/**
 * Opens an HTTP proxy on a unix socket (a path of at most 107 bytes) or on a listening socket, as workerd uses one
 * (`globalOutbound` is `external` with `http = (style = proxy)`). Dials public addresses, whatever EGRESS_ALLOW says,
 * and those that `internal` opens.
 *
 * @param proxy `EGRESS_PROXY`, for all requests to public addresses
 * @throws the error of `listen` when the socket cannot be created
 */
export function openEgress(
  place: ProxyPlace,
  options: ProgramProxyOptions,
  proxy: string | null = null,
  internal: InternalRoutes | null = null,
): Promise<ProgramProxy> {
  const outside = new Egress(new AddressPolicy([]), publicNames(), { proxy });
  const inside = internal && new Egress(internal.policy, publicNames(), { proxy, closedPorts: internal.closedPorts });
  return ProgramProxy.open(place, options, outside, PROXY_LIMITS, inside);
}

/**
 * Returns a resolver that does not use `dns.lookup`, which occupies one of four libuv threads per name: a program that looks up names with silent
 * servers would block all programs. Ignores the hosts file, whose names are internal.
 */
function publicNames(): ResolveHost {
  const resolver = new Resolver({ timeout: ATTEMPT_MS, tries: ATTEMPTS });
  return (hostname, _options, callback) => {
    void Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]).then(([v4, v6]) => {
      const resolved: LookupAddress[] = [...addresses(v4, 4), ...addresses(v6, 6)];
      if (resolved.length > 0) return callback(null, resolved);
      callback(v4.status === 'rejected' ? (v4.reason as NodeJS.ErrnoException) : null, []);
    });
  };
}

function addresses(outcome: PromiseSettledResult<string[]>, family: 4 | 6): LookupAddress[] {
  return outcome.status === 'fulfilled' ? outcome.value.map((address) => ({ address, family })) : [];
}
