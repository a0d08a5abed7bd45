import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import {
  type Egress,
  egressTo,
  Env,
  KeyedLimiter,
  MockModelError,
  type MockModelProvider,
  MockModels,
  type ModelledCall,
  NoSlotError,
  Tuning,
} from '../../extension.js';
import { answerWithModel } from './model-answers.js';
import { ModelClient } from './model-client.js';

/** Limit of concurrent requests of one process, and of the wait for a slot. */
const PARALLEL_MAX = 8;
const SLOT_WAIT_MS = 2_000;

/** A namespace can use a quarter of the day's requests. */
const NAMESPACE_PART = 4;

@Injectable()
export class MockModel implements MockModelProvider, OnModuleInit, OnApplicationShutdown {
  private readonly slots = KeyedLimiter.fair(PARALLEL_MAX, SLOT_WAIT_MS);
  private readonly egress: Egress;
  private readonly client: ModelClient;

  constructor(
    private readonly mockModels: MockModels,
    private readonly env: Env,
    private readonly tuning: Tuning,
  ) {
    const url = env.simulatorUrl ?? '';
    this.egress = egressTo(new URL(url).hostname, env);
    this.client = new ModelClient(this.egress, { url, model: env.simulatorModel ?? '', apiKey: env.simulatorApiKey });
  }

  onModuleInit(): void {
    this.mockModels.provider = this;
  }

  async onApplicationShutdown(): Promise<void> {
    await this.egress.close();
  }

  resultOf(call: ModelledCall): ReturnType<MockModelProvider['resultOf']> {
    const { client, tuning } = this;
    const spend = <T>(request: () => Promise<T>) => this.spend(call, request);
    return answerWithModel(call, { client, timeoutMs: tuning.simulatorTimeoutMs, spend });
  }

  private async spend<T>({ namespaceId, countRequest }: ModelledCall, request: () => Promise<T>): Promise<T> {
    const total = this.env.simulatorDailyCallsMax;
    const quota = { total, namespace: Math.max(1, Math.floor(total / NAMESPACE_PART)) };
    try {
      return await this.slots.run(namespaceId, async () => {
        if (!(await countRequest(quota))) {
          throw new MockModelError('The daily quota of requests to the language model is used up.');
        }
        return request();
      });
    } catch (error) {
      if (error instanceof NoSlotError)
        throw new MockModelError('Too many requests to the language model are in progress.');
      throw error;
    }
  }
}
