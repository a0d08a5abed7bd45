import { Injectable, type OnModuleInit } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { LRUCache } from 'lru-cache';
import { Repository } from 'typeorm';
import type { Channel } from '../../../mcp/protocol/channel.js';
import { ReplaySimulator } from './simulator/replay-simulator.js';
import { SchemaSimulator } from './simulator/schema-simulator.js';
import { SimulatedChannel, type SimulatedServer } from './simulator/simulated-channel.js';
import { ConnectionTransports, type ConnectionTransport } from '../core/connection-transports.js';
import { ResourceNotFoundError } from '../core/connections.errors.js';
import { ConnectionMock } from './connection-mock.entity.js';
import { MockReplies, replayedIn } from './mock-replies.js';
import { MockModel } from './mock-model.js';
import { MockCallHistory } from './mock-call-history.js';

/** Frozen servers held in memory by one process: so many, and so many characters of JSON. */
const HELD_MAX = 1_000;
const HELD_CHARS_MAX = 64 * 1024 * 1024;

/** Which mock, and what seeds it. */
export interface MockTarget {
  id: string;
  namespaceId: string;
  scenario: string | null;
}

/** The channels of simulated connections. None of them knows an address to call. */
@Injectable()
export class MockChannels implements ConnectionTransport<'mock'>, OnModuleInit {
  private readonly held = new LRUCache<string, { server: Promise<SimulatedServer>; chars: number }>({
    max: HELD_MAX,
    maxSize: HELD_CHARS_MAX,
    sizeCalculation: ({ chars }) => chars,
  });

  constructor(
    @InjectRepository(ConnectionMock) private readonly mocks: Repository<ConnectionMock>,
    private readonly model: MockModel,
    private readonly replies: MockReplies,
    private readonly transports: ConnectionTransports,
  ) {}

  onModuleInit(): void {
    this.transports.register('mock', this);
  }

  channelTo(target: MockTarget): Channel {
    return new SimulatedChannel(() => this.find(target));
  }

  private find(target: MockTarget): Promise<SimulatedServer> {
    const held = this.held.get(target.id);
    if (held) return held.server;
    const server = this.load(target).catch((error: unknown) => {
      this.held.delete(target.id);
      throw error;
    });
    this.held.set(target.id, { server, chars: 1 });
    return server;
  }

  /** @throws ResourceNotFoundError */
  private async load({ id, namespaceId, scenario }: MockTarget): Promise<SimulatedServer> {
    const row = await this.mocks.findOneBy({ connectionId: id });
    if (!row) throw new ResourceNotFoundError();
    const { seed, server } = row;
    const schema = new SchemaSimulator(server, { seed, scenario });
    const recorded = replayedIn(scenario) === null ? null : await this.replies.of(id);
    const simulator = recorded
      ? new ReplaySimulator(schema, recorded.calls)
      : this.model.before(schema, { namespaceId, scenario });
    const history = new MockCallHistory(this.mocks.manager.connection, id, schema.firstWorld);
    const simulated: SimulatedServer = { server, simulator, history };
    this.held.set(id, {
      server: Promise.resolve(simulated),
      chars: JSON.stringify(server).length + (recorded?.chars ?? 0),
    });
    return simulated;
  }
}
