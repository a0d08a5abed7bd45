import type { DataSource, EntityManager } from 'typeorm';
import type { Answerer, AskedCall, MockHistory, PastCall, ToolResult } from './simulator/simulator.js';
import type { World } from './simulator/world.js';
import { ResourceNotFoundError } from '../core/connections.errors.js';

/** Calls kept of one mock. What they led to is in its world, so that older ones are not needed. */
const CALLS_KEPT = 1_000;

/** What is kept of one call's arguments, and of its answer. */
const TEXT_CHARS_MAX = 16 * 1024;

interface MockState {
  calls: number;
  things: string | null;
  counters: string | null;
}

/**
 * The calls of one mock in Postgres. The mock's row is locked while a call is put behind the others, so calls of all
 * processes have one order; within this process they wait here for their turn, and hold one database connection at most.
 */
export class MockCallHistory implements MockHistory {
  private tail: Promise<unknown> = Promise.resolve();
  /** The world after call `calls`, as far as this process has seen it. */
  private known: { calls: number; world: World } | null = null;

  constructor(
    private readonly database: DataSource,
    private readonly connectionId: string,
    private readonly firstWorld: World,
  ) {}

  async recent(limit: number): Promise<PastCall[]> {
    const newest = await this.database.query<PastCall[]>(
      'SELECT seq, tool, arguments, answer FROM mock_calls WHERE connection_id = $1 ORDER BY seq DESC LIMIT $2',
      [this.connectionId, limit],
    );
    return newest.reverse();
  }

  /** @throws ResourceNotFoundError when the connection is deleted by then */
  append(call: AskedCall, answer: Answerer): Promise<ToolResult> {
    const turn = this.tail.then(() => this.database.transaction((tx) => this.put(call, answer, tx)));
    this.tail = turn.catch(() => undefined);
    return turn.then(({ calls, world, result }) => {
      this.known = { calls, world };
      return result;
    });
  }

  private async put(
    call: AskedCall,
    answer: Answerer,
    tx: EntityManager,
  ): Promise<{ calls: number; world: World; result: ToolResult }> {
    const { calls: before, world: from } = await this.locked(tx);
    const calls = before + 1;
    const { result, world } = answer({ seq: calls, world: from });
    const { things, lastNumbers, ...counters } = world;
    const hasChanged = things !== from.things || before === 0;
    await tx.query(
      `UPDATE connection_mocks SET calls = $2, counters = $3, things = CASE WHEN $4 THEN $5 ELSE things END
        WHERE connection_id = $1`,
      [
        this.connectionId,
        calls,
        JSON.stringify(counters),
        hasChanged,
        hasChanged ? JSON.stringify({ things, lastNumbers }) : null,
      ],
    );
    await tx.query('INSERT INTO mock_calls (connection_id, seq, tool, arguments, answer) VALUES ($1, $2, $3, $4, $5)', [
      this.connectionId,
      calls,
      call.tool,
      bounded(call.arguments),
      bounded(result),
    ]);
    await tx.query('DELETE FROM mock_calls WHERE connection_id = $1 AND seq <= $2', [
      this.connectionId,
      calls - CALLS_KEPT,
    ]);
    return { calls, world, result };
  }

  /** Where the mock stands; nobody else moves it until the transaction ends. */
  private async locked(tx: EntityManager): Promise<{ calls: number; world: World }> {
    const [row] = await tx.query<{ calls: number }[]>(
      'SELECT calls FROM connection_mocks WHERE connection_id = $1 FOR UPDATE',
      [this.connectionId],
    );
    if (!row) throw new ResourceNotFoundError();
    if (row.calls === 0) return { calls: 0, world: this.firstWorld };
    if (this.known?.calls === row.calls) return this.known;
    const [state] = await tx.query<MockState[]>(
      'SELECT calls, things, counters FROM connection_mocks WHERE connection_id = $1',
      [this.connectionId],
    );
    return { calls: row.calls, world: toWorld(state) };
  }
}

function toWorld({ things, counters }: MockState): World {
  return { ...(JSON.parse(things ?? '{}') as object), ...(JSON.parse(counters ?? '{}') as object) } as World;
}

/** A text with half of its end missing would be no JSON. */
function bounded(value: unknown): string | null {
  const text = JSON.stringify(value);
  return text.length > TEXT_CHARS_MAX ? null : text;
}
