import { isIP } from 'node:net';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { Env } from '../../../config/env.js';
import { ModelClient, ModelFailure } from './simulator/model-client.js';
import { ModelSimulator } from './simulator/model-simulator.js';
import type { SchemaSimulator } from './simulator/schema-simulator.js';
import type { Simulator } from './simulator/simulator.js';
import { AddressPolicy, parseEgressAllow } from '../../../platform/egress/address-policy.js';
import { Egress } from '../../../platform/egress/egress.js';
import { NoSlotError, FairSemaphore } from '../../../platform/limits/fair-semaphore.js';
import { SimulatorUsage } from './simulator-usage.entity.js';

/** Questions at once from one process, and how long one waits for its turn. */
const PARALLEL_MAX = 8;
const TURN_WAIT_MS = 2_000;

/** No namespace may use up more than this part of a day's questions. */
const NAMESPACE_PART = 4;

/** The operator's language model, if there is one. */
@Injectable()
export class MockModel implements OnApplicationShutdown {
  private readonly slots = new FairSemaphore(PARALLEL_MAX, TURN_WAIT_MS);
  private readonly egress: Egress | null;
  private readonly client: ModelClient | null;

  constructor(
    @InjectRepository(SimulatorUsage) private readonly days: Repository<SimulatorUsage>,
    private readonly env: Env,
  ) {
    const { simulatorUrl: url, simulatorModel: model, simulatorApiKey: apiKey } = env;
    // The operator names this address, so it may be an internal one; nothing else may be reached through this door.
    this.egress = url === null ? null : new Egress(new AddressPolicy(parseEgressAllow(hostOf(url))));
    this.client =
      this.egress && url !== null && model !== null ? new ModelClient(this.egress, { url, model, apiKey }) : null;
  }

  async onApplicationShutdown(): Promise<void> {
    await this.egress?.close();
  }

  /** Who answers for a mock of this namespace: the model with `schema` behind it, or `schema` alone. */
  before(
    schema: SchemaSimulator,
    { namespaceId, scenario }: { namespaceId: string; scenario: string | null },
  ): Simulator {
    const { client } = this;
    if (!client) return schema;
    return new ModelSimulator(schema, {
      client,
      scenario,
      timeoutMs: this.env.simulatorTimeoutMs,
      spend: (ask) => this.spend(namespaceId, ask),
    });
  }

  private async spend<T>(namespaceId: string, ask: () => Promise<T>): Promise<T> {
    try {
      return await this.slots.run(namespaceId, async () => {
        if (!(await this.count(namespaceId))) throw new ModelFailure('No more questions to the language model today.');
        return ask();
      });
    } catch (error) {
      if (error instanceof NoSlotError) throw new ModelFailure('Too many others ask the language model right now.');
      throw error;
    }
  }

  /** Counts a question; false when the day's are used up. */
  private async count(namespaceId: string): Promise<boolean> {
    const max = this.env.simulatorDailyCallsMax;
    const own = Math.max(1, Math.floor(max / NAMESPACE_PART));
    const rows = await this.days.query<{ calls: number }[]>(
      `INSERT INTO simulator_days AS d (day, namespace_id, calls)
       SELECT current_date, $1, 1
        WHERE (SELECT coalesce(sum(calls), 0) FROM simulator_days WHERE day = current_date) < $2
       ON CONFLICT (day, namespace_id) DO UPDATE SET calls = d.calls + 1 WHERE d.calls < $3
       RETURNING calls`,
      [namespaceId, max, own],
    );
    if (rows[0]?.calls === 1) await this.days.query('DELETE FROM simulator_days WHERE day < current_date');
    return rows.length > 0;
  }
}

/** The host of an address, as the list of what may be dialled names it. */
function hostOf(url: string): string {
  const { hostname } = new URL(url);
  const literal = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  return isIP(literal) === 0 ? hostname : literal;
}
