import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository, type EntityManager } from 'typeorm';
import type { RecordedCall } from './simulator/replay-simulator.js';
import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import { Vault } from '../../../platform/vault/vault.js';
import { CallRecorder } from './call-recorder.js';
import { MockReply } from './mock-reply.entity.js';

/** A scenario that names a recording. */
const REPLAY = /^replay:(.*)$/s;

/** The connection whose recording a scenario names; null when it is a text like any other. */
export function replayedIn(scenario: string | null | undefined): string | null {
  return REPLAY.exec(scenario ?? '')?.[1]?.trim() ?? null;
}

/** Copies recordings for mocks, and reads the copies. */
@Injectable()
export class MockReplies {
  constructor(
    @InjectRepository(MockReply) private readonly replies: Repository<MockReply>,
    private readonly recorder: CallRecorder,
    private readonly vault: Vault,
  ) {}

  /**
   * The calls recorded of a connection of this namespace, as JSON texts in their order.
   *
   * @throws InvalidInputError when there are none
   */
  async recorded(namespaceId: string, connectionId: string): Promise<string[]> {
    await this.recorder.settle();
    const rows = await this.replies.query<{ id: string; sealed: string }[]>(
      `SELECT c.id, r.sealed FROM connections c JOIN recorded_calls r ON r.connection_id = c.id
        WHERE c.namespace_id = $1 AND c.connection_id = $2 AND r.recorded_at > now() - interval '7 days' ORDER BY r.seq`,
      [namespaceId, connectionId],
    );
    if (rows.length > 0) return rows.map(({ id, sealed }) => this.vault.open(sealed, id));
    throw new InvalidInputError(
      `Nothing is recorded of "${connectionId.slice(0, 255)}" in this namespace: ` +
        `PUT {"enabled": true} to its /recording, call its tools, then create the mock.`,
    );
  }

  /** Part of the transaction that creates the mock. @param id of its connection's row */
  async insert(id: string, texts: readonly string[], tx: EntityManager): Promise<void> {
    if (texts.length === 0) return;
    await tx.query(
      `INSERT INTO mock_replies (connection_id, place, sealed)
       SELECT $1, place, sealed FROM unnest($2::text[]) WITH ORDINALITY AS given(sealed, place)`,
      [id, texts.map((text) => this.vault.seal(text, id))],
    );
  }

  /** What a mock replays, in the order of recording, and how long it is as JSON. */
  async of(id: string): Promise<{ calls: RecordedCall[]; chars: number }> {
    const rows = await this.replies.find({ where: { connectionId: id }, order: { place: 'ASC' } });
    const texts = rows.map(({ sealed }) => this.vault.open(sealed, id));
    return {
      calls: texts.map((text) => JSON.parse(text) as RecordedCall),
      chars: texts.reduce((sum, { length }) => sum + length, 0),
    };
  }
}
