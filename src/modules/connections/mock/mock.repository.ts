import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { Vault } from '../../../platform/vault/vault.js';
import { ResourceNotFoundError } from '../core/connections.errors.js';
import type { Answer, Answerer, FrozenServer, PastCall, ToolCall, UseCounts } from './simulator/simulator.js';
import { deletionTime } from '../../../platform/database/deletion-time.js';

const CALLS_MAX = 1_000;

/** Limits the JSON of the arguments, and that of the result. */
const TEXT_CHARS_MAX = 16 * 1024;

@Injectable()
export class MocksRepository {
  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly vault: Vault,
  ) {}

  /** @param replies sealed, in order */
  async insert(
    { id, server, replies }: { id: string; server: FrozenServer; replies: readonly string[] },
    tx: EntityManager,
  ): Promise<void> {
    await tx.query('INSERT INTO connection_mocks (connection_id, server) VALUES ($1, $2::jsonb)', [
      id,
      JSON.stringify(server),
    ]);
    if (replies.length === 0) return;
    await tx.query(
      `INSERT INTO mock_replies (connection_id, place, sealed)
       SELECT $1, place, sealed FROM unnest($2::text[]) WITH ORDINALITY AS reply(sealed, place)`,
      [id, replies],
    );
  }

  /** Returns the recent calls, oldest first. */
  async recentCalls(id: string, limit: number): Promise<PastCall[]> {
    const newest = await this.database.query<{ seq: number; tool: string; sealed: string }[]>(
      'SELECT seq, tool, sealed FROM mock_calls WHERE connection_id = $1 ORDER BY seq DESC LIMIT $2',
      [id, limit],
    );
    return newest.reverse().map(({ seq, tool, sealed }) => {
      const call = JSON.parse(this.vault.open(sealed, id)) as Pick<PastCall, 'arguments' | 'answer'>;
      return { seq, tool, ...call };
    });
  }

  /**
   * Appends a call. Computes its result under the lock of the mock's row, which orders the calls of all processes.
   *
   * @throws ResourceNotFoundError if the connection was deleted
   */
  appendCall(id: string, call: ToolCall, answerer: Answerer): Promise<Answer> {
    return this.database.transaction(async (tx) => {
      const [mock] = await tx.query<{ calls: number; uses: UseCounts }[]>(
        'SELECT calls, uses FROM connection_mocks WHERE connection_id = $1 FOR UPDATE',
        [id],
      );
      if (!mock) throw new ResourceNotFoundError();
      const seq = mock.calls + 1;
      const answer = answerer(mock.uses);
      const callJson = JSON.stringify({ arguments: toShortJson(call.arguments), answer: toShortJson(answer.result) });
      await tx.query('UPDATE connection_mocks SET calls = $2, uses = $3::jsonb WHERE connection_id = $1', [
        id,
        seq,
        JSON.stringify(answer.uses ?? mock.uses),
      ]);
      await tx.query('INSERT INTO mock_calls (connection_id, seq, tool, sealed) VALUES ($1, $2, $3, $4)', [
        id,
        seq,
        call.tool,
        this.vault.seal(callJson, id),
      ]);
      await tx.query('DELETE FROM mock_calls WHERE connection_id = $1 AND seq <= $2', [id, seq - CALLS_MAX]);
      return answer;
    });
  }

  /** @returns false if a quota of the day is used up */
  async countRequest(namespaceId: string, quota: { total: number; namespace: number }): Promise<boolean> {
    const rows = await this.database.query<{ calls: number }[]>(
      `INSERT INTO simulator_days AS d (day, namespace_id, calls)
       SELECT current_date, $1, 1
        WHERE (SELECT coalesce(sum(calls), 0) FROM simulator_days WHERE day = current_date) < $2
       ON CONFLICT (day, namespace_id) DO UPDATE SET calls = d.calls + 1 WHERE d.calls < $3
       RETURNING calls`,
      [namespaceId, quota.total, quota.namespace],
    );
    const now = rows[0]?.calls === 1 && (await deletionTime(this.database));
    if (now) await this.database.query('DELETE FROM simulator_days WHERE day < $1::timestamptz::date', [now]);
    return rows.length > 0;
  }
}

/** @returns null if the JSON is too long: cut JSON is invalid */
function toShortJson(value: unknown): string | null {
  const text = JSON.stringify(value);
  return text.length > TEXT_CHARS_MAX ? null : text;
}
