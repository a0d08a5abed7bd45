/**
 * Channels of simulated connections (mocks), which contact no server.
 *
 * A mock keeps the server as it was at its creation, and has one simulator, chosen by its scenario: a fixture, a recording, prose for a
 * language model, a state in which every request fails, or none: values made from the schemas. A lock on the mock's row orders the calls of
 * all processes, so that a fixture or recording advances once per call. A mock never changes, so it is cached without expiry.
 */
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { LRUCache } from 'lru-cache';
import { Repository } from 'typeorm';
import { withHiddenAddress } from '../../../mcp/client/http/hidden-address.js';
import { RefusingChannel } from '../../../mcp/client/refusing-channel.js';
import type { Channel } from '../../../mcp/protocol/channel.js';
import { fromHttpStatus } from '../../../mcp/protocol/mcp-errors.js';
import { Vault } from '../../../platform/vault/vault.js';
import { InputRequiredError, ServerAuthRequiredError } from '../../run/run.errors.js';
import type { ConnectionTransport } from '../core/connection-transports.js';
import { ResourceNotFoundError } from '../core/connections.errors.js';
import { ConnectionMock, MockReply } from './mock.entity.js';
import { MockModels } from './mock-models.service.js';
import { MocksRepository } from './mock.repository.js';
import { readScenario, FixtureSimulator, type MockState } from './simulator/fixture.js';
import { ModelSimulator } from './simulator/model-simulator.js';
import { SchemaSimulator } from './simulator/schema-simulator.js';
import { SimulatedChannel, type SimulatedServer } from './simulator/simulated-channel.js';
import {
  type Simulator,
  countUse,
  fallback,
  markResult,
  simulatorMark,
  type Answerer,
  type SimulatedCall,
  type RecordedCall,
  type ToolCall,
  type ToolResult,
} from './simulator/simulator.js';
import { createHash } from 'node:crypto';
import { patternsOf } from '../../../platform/json-schema/patterns.js';
import { canonicalJson, isObject, type JsonObject } from '../../../platform/text/json.js';

/** Maximum size of the cache, in characters of JSON. */
const CACHED_CHARS_MAX = 64 * 1024 * 1024;

const NOT_INTERPRETED =
  'The scenario was not interpreted: this service has no language model. A JSON object with "tools" is read as a fixture.';

/** Replays the recorded results of the same tool and equal arguments, in order; the last one repeats. */
class ReplaySimulator implements Simulator {
  private readonly results = new Map<string, string[]>();

  constructor(
    private readonly schema: SchemaSimulator,
    recorded: readonly RecordedCall[],
  ) {
    for (const call of recorded) {
      const key = keyOf(call);
      this.results.set(key, [...(this.results.get(key) ?? []), call.result]);
    }
  }

  async prepare(call: SimulatedCall): Promise<Answerer> {
    const key = keyOf(call);
    const results = this.results.get(key);
    if (!results) return fallback(await this.schema.prepare(call), 'No recorded call has these arguments.');
    return (uses) => {
      const text = results[Math.min(uses[key] ?? 0, results.length - 1)];
      const result = markResult(JSON.parse(text) as ToolResult, { [simulatorMark.by]: 'recording' });
      return { result, uses: countUse(uses, key) };
    };
  }
}

const MISSING_HEADER = 'X-Api-Key';

const RETRY_AFTER_SECONDS = '5';

/** Replaces the address of the server, which failures of connections never name. */
const NOWHERE = new URL('http://simulated.invalid/mcp');

export interface MockTarget {
  id: string;
  namespaceId: string;
  serverName: string;
  scenario: string | null;
}

@Injectable()
export class MockChannels implements ConnectionTransport<'mock'> {
  private readonly cache = new LRUCache<string, { server: Promise<SimulatedServer>; chars: number }>({
    maxSize: CACHED_CHARS_MAX,
    // A mock needs some memory in addition to its JSON.
    sizeCalculation: ({ chars }) => chars + 4_000,
  });

  constructor(
    @InjectRepository(ConnectionMock) private readonly connectionMockRepository: Repository<ConnectionMock>,
    @InjectRepository(MockReply) private readonly mockReplyRepository: Repository<MockReply>,
    private readonly mocksRepository: MocksRepository,
    private readonly vault: Vault,
    private readonly mockModels: MockModels,
  ) {}

  channelTo(target: MockTarget): Channel {
    const scenario = readScenario(target.scenario);
    if (scenario.kind === 'failure') return new RefusingChannel(() => failureIn(scenario.state, target.serverName));
    return new SimulatedChannel(() => this.find(target));
  }

  private find(target: MockTarget): Promise<SimulatedServer> {
    const cached = this.cache.get(target.id);
    if (cached) return cached.server;
    const server = this.load(target).catch((error: unknown) => {
      this.cache.delete(target.id);
      throw error;
    });
    this.cache.set(target.id, { server, chars: 1 });
    return server;
  }

  /** @throws ResourceNotFoundError */
  private async load(target: MockTarget): Promise<SimulatedServer> {
    const { id } = target;
    const row = await this.connectionMockRepository.findOneBy({ connectionId: id });
    if (!row) throw new ResourceNotFoundError();
    const server = { ...row.server, tools: row.server.tools?.map(withUncheckedPatterns) ?? null };
    const schema = new SchemaSimulator(server, target.namespaceId);
    const { simulator, chars } = await this.simulatorFor(target, schema);
    // Calls of this process queue here, so that a mock uses at most one database connection.
    let tail: Promise<unknown> = Promise.resolve();
    const simulated: SimulatedServer = {
      server,
      simulator,
      history: {
        recent: (limit) => this.mocksRepository.recentCalls(id, limit),
        append: (call, answerer) => {
          const answer = tail.then(() => this.mocksRepository.appendCall(id, call, answerer));
          tail = answer.catch(() => undefined);
          return answer;
        },
      },
    };
    this.cache.set(id, { server: Promise.resolve(simulated), chars: JSON.stringify(server).length + chars });
    return simulated;
  }

  private async simulatorFor(
    { id, namespaceId, scenario }: MockTarget,
    schema: SchemaSimulator,
  ): Promise<{ simulator: Simulator; chars: number }> {
    const read = readScenario(scenario);
    if (read.kind === 'fixture') return { simulator: new FixtureSimulator(schema, read.fixture), chars: 0 };
    if (read.kind !== 'replay') {
      const text = read.kind === 'prose' ? scenario : null;
      const { provider } = this.mockModels;
      const countRequest = (quota: { total: number; namespace: number }) =>
        this.mocksRepository.countRequest(namespaceId, quota);
      const modelled = provider && new ModelSimulator(schema, provider, { namespaceId, scenario: text, countRequest });
      if (modelled || text === null) return { simulator: modelled ?? schema, chars: 0 };
      // Results made from the schemas alone carry the reason that no prose was interpreted.
      return {
        simulator: { prepare: async (call) => fallback(await schema.prepare(call), NOT_INTERPRETED) },
        chars: 0,
      };
    }
    const rows = await this.mockReplyRepository.find({ where: { connectionId: id }, order: { place: 'ASC' } });
    const callJson = rows.map(({ sealed }) => this.vault.open(sealed, id));
    const calls = callJson.map((text) => JSON.parse(text) as RecordedCall);
    return {
      simulator: new ReplaySimulator(schema, calls),
      chars: callJson.reduce((sum, { length }) => sum + length, 0),
    };
  }
}

function failureIn(state: MockState, serverName: string): Error {
  if (state === 'auth_required') return new ServerAuthRequiredError(serverName, '', ['Bearer']);
  if (state === 'input_required') {
    const headers = { [MISSING_HEADER]: { label: MISSING_HEADER, required: true } };
    return new InputRequiredError({ http: { headers }, missing: { headers: [MISSING_HEADER], query: [] } });
  }
  const retryAfter = state === '429' ? RETRY_AFTER_SECONDS : undefined;
  return withHiddenAddress(fromHttpStatus(+state, NOWHERE, undefined, '', retryAfter), NOWHERE, `"${serverName}"`);
}

function keyOf({ tool, arguments: args }: ToolCall): string {
  return createHash('sha256')
    .update(canonicalJson([tool, args]))
    .digest('hex')
    .slice(0, 32);
}

function withUncheckedPatterns(tool: JsonObject): JsonObject {
  const unchecked = ['inputSchema', 'outputSchema'].flatMap((name) =>
    patternsOf(tool[name]).flatMap(({ place, refusal }) =>
      refusal === null ? [] : [`${name}.${place}: ${refusal}`.slice(0, 300)],
    ),
  );
  if (unchecked.length === 0) return tool;
  const meta = isObject(tool._meta) ? tool._meta : {};
  return { ...tool, _meta: { ...meta, [simulatorMark.unchecked]: unchecked.slice(0, 20) } };
}
