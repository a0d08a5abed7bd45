import { Global, Inject, Logger, Module, type OnApplicationShutdown } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { AddressPolicy, parseEgressAllow, portOf } from './address-policy.js';
import { type ClosedPorts, Egress, isLocalAddress } from './egress.js';

/** Checks of the settings that list addresses, for `loadEnv`. */
export const egressChecks = [
  ({ egressAllow }: Env) => void parseEgressAllow(egressAllow ?? ''),
  ({ hostingEgressAllow }: Env) => void parseEgressAllow(hostingEgressAllow, 'HOSTING_EGRESS_ALLOW'),
];

/**
 * Returns an egress for a location that the operator configures: it can be internal, and no other internal location can be reached.
 *
 * @param host name, address, or the names under one (`*.example.com`)
 */
export function egressTo(host: string, { egressProxy: proxy }: Env): Egress {
  return new Egress(new AddressPolicy(parseEgressAllow(host.replace(/^\[|\]$/g, ''))), undefined, { proxy });
}

/**
 * Returns local ports that no rule opens: those of the database, of Redis, and of requests between processes. The port of the
 * API remains open: requests that lead back to it are detected and reported.
 */
export function ownPorts({ databaseUrl, redisUrl, advertiseUrl, port, worker }: Env): ClosedPorts {
  const urls = [databaseUrl, redisUrl, advertiseUrl].flatMap((url) => (url === null ? [] : [new URL(url)]));
  const ports = [...urls.map(servicePort), ...(worker?.internalPorts ?? [])];
  const closed = new Map(ports.map((each) => [each, isLocalAddress]));
  closed.delete(port);
  return closed;
}

export function servicePort(url: URL): number {
  const usual: Record<string, number> = { 'postgres:': 5432, 'postgresql:': 5432, 'redis:': 6379, 'rediss:': 6379 };
  return usual[url.port === '' ? url.protocol : ''] ?? portOf(url);
}

/** Outbound requests to addresses from users. */
@Global()
@Module({
  providers: [
    {
      provide: Egress,
      inject: [Env],
      useFactory: (env: Env) => {
        const allow = env.egressAllow ?? (env.isLocalOnly ? 'loopback' : '');
        if (env.egressAllow === null && env.isLocalOnly) {
          new Logger('egress').log('Loopback addresses may be dialled, since only this machine can reach the service');
        }
        return new Egress(new AddressPolicy(parseEgressAllow(allow)), undefined, {
          closedPorts: ownPorts(env),
          proxy: env.egressProxy,
        });
      },
    },
  ],
  exports: [Egress],
})
export class EgressModule implements OnApplicationShutdown {
  constructor(@Inject(Egress) private readonly egress: Egress) {}

  async onApplicationShutdown(): Promise<void> {
    await this.egress.close();
  }
}
