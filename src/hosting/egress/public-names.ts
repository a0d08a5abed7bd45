import type { LookupAddress } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import type { ResolveHost } from '../../platform/egress/egress.js';

/** With 2 attempts, a name whose servers are silent is given up after about 4 s. */
const ATTEMPT_MS = 1_300;
const ATTEMPTS = 2;

/**
 * Asks the name servers of this machine, IPv4 first. Not `dns.lookup`: that holds one of the process's four threads for
 * files and names as long as it takes, so code that asks for names with silent servers would stop everybody. The
 * machine's own hosts file is not read; its names mean nothing to hosted code.
 */
export function publicNames(): ResolveHost {
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
