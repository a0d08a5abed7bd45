import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { Env } from '../../../config/env.js';
import { Tuning } from '../../../config/tuning.js';
import { egressTo } from '../../../platform/egress/egress.module.js';
import type { Egress } from '../../../platform/egress/egress.js';
import { KeyedLimiter, NoSlotError } from '../../../platform/limits/keyed-limiter.js';
import { MocksRepository } from './mock.repository.js';
import { ModelClient, ModelFailure, ModelSimulator } from './simulator/model-simulator.js';
import type { SchemaSimulator } from './simulator/schema-simulator.js';

/** Concurrent requests of one process, and the wait for a slot. */
const PARALLEL_MAX = 8;
const SLOT_WAIT_MS = 2_000;

/** A namespace may use a quarter of the day's requests. */
const NAMESPACE_PART = 4;

/** The operator's language model. Loaded only with `SIMULATOR_URL`. */
@Injectable()
export class MockModel implements OnApplicationShutdown {
  private readonly slots = KeyedLimiter.fair(PARALLEL_MAX, SLOT_WAIT_MS);
  private readonly egress: Egress;
  private readonly client: ModelClient;

  constructor(
    private readonly mocksRepository: MocksRepository,
    private readonly env: Env,
    private readonly tuning: Tuning,
  ) {
    const url = env.simulatorUrl ?? '';
    this.egress = egressTo(new URL(url).hostname, env);
    this.client = new ModelClient(this.egress, { url, model: env.simulatorModel ?? '', apiKey: env.simulatorApiKey });
  }

  async onApplicationShutdown(): Promise<void> {
    await this.egress.close();
  }

  /** The simulator of a mock with a prose scenario, or without any. */
  simulator(
    schema: SchemaSimulator,
    { namespaceId, scenario }: { namespaceId: string; scenario: string | null },
  ): ModelSimulator {
    const { client } = this;
    const spend = <T>(request: () => Promise<T>) => this.spend(namespaceId, request);
    return new ModelSimulator(schema, { client, scenario, timeoutMs: this.tuning.simulatorTimeoutMs, spend });
  }

  private async spend<T>(namespaceId: string, request: () => Promise<T>): Promise<T> {
    const total = this.env.simulatorDailyCallsMax;
    const quota = { total, namespace: Math.max(1, Math.floor(total / NAMESPACE_PART)) };
    try {
      return await this.slots.run(namespaceId, async () => {
        if (!(await this.mocksRepository.countRequest(namespaceId, quota))) {
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
