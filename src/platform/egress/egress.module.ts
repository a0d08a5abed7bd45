import { Global, Inject, Logger, Module, type OnApplicationShutdown } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { AddressPolicy, parseEgressAllow } from './address-policy.js';
import { Egress } from './egress.js';

function createEgress(env: Env): Egress {
  const allow = env.egressAllow ?? (env.isLocalOnly ? 'loopback' : '');
  if (env.egressAllow === null && env.isLocalOnly) {
    new Logger('egress').log('Loopback addresses may be dialled, since only this machine can reach the service');
  }
  return new Egress(new AddressPolicy(parseEgressAllow(allow)));
}

/** Outbound requests to addresses from users. */
@Global()
@Module({ providers: [{ provide: Egress, inject: [Env], useFactory: createEgress }], exports: [Egress] })
export class EgressModule implements OnApplicationShutdown {
  constructor(@Inject(Egress) private readonly egress: Egress) {}

  async onApplicationShutdown(): Promise<void> {
    await this.egress.close();
  }
}
