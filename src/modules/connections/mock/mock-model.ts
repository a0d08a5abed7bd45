import { isIP } from 'node:net';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { Env } from '../../../config/env.js';
import { AddressPolicy, parseEgressAllow } from '../../../platform/egress/address-policy.js';
import { Egress } from '../../../platform/egress/egress.js';
import { FairSemaphore, NoSlotError } from '../../../platform/limits/fair-semaphore.js';
import { MockRepository } from './mock.repository.js';
import { ModelClient, ModelFailure } from './simulator/model-simulator.js';
import { ModelSimulator } from './simulator/model-simulator.js';
import type { SchemaSimulator } from './simulator/schema-simulator.js';
import { fallback, type Simulator } from './simulator/simulator.js';

/** Concurrent requests of one process, and the wait for a slot. */
const PARALLEL_MAX = 8;
const SLOT_WAIT_MS = 2_000;

/** A namespace may use a quarter of the day's requests. */
const NAMESPACE_PART = 4;

const NOT_INTERPRETED =
  'The scenario was not interpreted: this service has no language model. A JSON object with "tools" is read as a fixture.';

/** The operator's language model, if one is configured. */
@Injectable()
export class MockModel implements OnApplicationShutdown {
  private readonly slots = new FairSemaphore(PARALLEL_MAX, SLOT_WAIT_MS);
  private readonly egress: Egress | null;
  private readonly client: ModelClient | null;

  constructor(
    private readonly mocks: MockRepository,
    private readonly env: Env,
  ) {
    const { simulatorUrl: url, simulatorModel: model, simulatorApiKey: apiKey } = env;
    // The operator configures this host, so it may be internal. This egress can reach no other one.
    this.egress = url === null ? null : new Egress(new AddressPolicy(parseEgressAllow(hostOf(url))));
    this.client =
      this.egress && url !== null && model !== null ? new ModelClient(this.egress, { url, model, apiKey }) : null;
  }

  async onApplicationShutdown(): Promise<void> {
    await this.egress?.close();
  }

  /** The simulator of a mock with a prose scenario, or without any: the model, else the schemas alone. */
  simulator(
    schema: SchemaSimulator,
    { namespaceId, scenario }: { namespaceId: string; scenario: string | null },
  ): Simulator {
    const { client } = this;
    if (client) {
      const spend = <T>(request: () => Promise<T>) => this.spend(namespaceId, request);
      return new ModelSimulator(schema, { client, scenario, timeoutMs: this.env.simulatorTimeoutMs, spend });
    }
    if (scenario === null) return schema;
    return { prepare: (call) => fallback(schema.prepare(call), NOT_INTERPRETED) };
  }

  private async spend<T>(namespaceId: string, request: () => Promise<T>): Promise<T> {
    const total = this.env.simulatorDailyCallsMax;
    const quota = { total, namespace: Math.max(1, Math.floor(total / NAMESPACE_PART)) };
    try {
      return await this.slots.run(namespaceId, async () => {
        if (!(await this.mocks.countRequest(namespaceId, quota))) {
          throw new ModelFailure('The daily quota of requests to the language model is used up.');
        }
        return request();
      });
    } catch (error) {
      if (error instanceof NoSlotError)
        throw new ModelFailure('Too many requests to the language model are in progress.');
      throw error;
    }
  }
}

/** The host of a URL in the form of EGRESS_ALLOW. */
function hostOf(url: string): string {
  const { hostname } = new URL(url);
  const literal = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  return isIP(literal) === 0 ? hostname : literal;
}
