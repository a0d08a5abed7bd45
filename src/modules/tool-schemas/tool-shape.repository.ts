import { Injectable, Logger } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { isDatabaseAway } from '../../platform/database/database-outage.js';
import { isForeignKeyViolation } from '../../platform/database/postgres-errors.js';
import { emptyShape, merged, shapeOf, type Shape } from './shape.js';
import { parseShape, toShapeText } from './shape-text.js';
import type { AnswerSample } from './answer-sample.js';

/** This week and the four before it count: what was last seen more than 28 to 35 days ago is forgotten. */
const WEEKS = 5;
const WEEK_MS = 7 * 24 * 3_600_000;

/** Tools of one server that are learned in one week. With the bounds of a shape some 40 MB at worst; usual is 1 MB. */
const TOOLS_MAX = 200;

/** Tools whose samples wait to be written, at most. */
const WAITING_MAX = 200;

/** How long samples may wait: a busy tool's row is written once in this time. */
const FLUSH_MS = 2_000;

/** What is known of the answers of one tool. */
export interface Observed {
  samples: number;
  structured: number;
  shape: Shape;
}

interface Waiting extends Observed {
  serverId: string;
  toolName: string;
}

interface Row {
  samples: number;
  structured: number;
  shape: string;
}

/**
 * The shapes of tools in the database. Samples of a process are put together for {@link FLUSH_MS} and then added to the
 * row of this week, under its lock: processes that write at once both count.
 */
@Injectable()
export class ToolShapeRepository {
  private readonly logger = new Logger('tool schemas');
  private waiting = new Map<string, Waiting>();
  private timer: NodeJS.Timeout | null = null;
  private flushing: Promise<void> = Promise.resolve();
  /** Samples that found no room, since the process started. */
  dropped = 0;

  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /** Adds one sample to what waits; without room it is dropped, as samples may be. */
  add(serverId: string, toolName: string, { value, isStructured }: AnswerSample): void {
    const key = `${serverId} ${toolName}`;
    if (this.waiting.size >= WAITING_MAX && !this.waiting.has(key)) {
      this.dropped += 1;
      return;
    }
    const sample = { samples: 1, structured: isStructured ? 1 : 0, shape: shapeOf(value) };
    this.wait(key, { serverId, toolName, ...together(sample, this.waiting.get(key)) });
  }

  /** What is known of a tool; null when none of its answers was seen lately. */
  async find(serverId: string, toolName: string): Promise<Observed | null> {
    const rows = await this.database.query<Row[]>(
      `SELECT samples, structured, shape FROM tool_output_shapes
        WHERE server_id = $1 AND tool_name = $2 AND week > $3 ORDER BY week`,
      [serverId, toolName, thisWeek() - WEEKS],
    );
    if (rows.length === 0) return null;
    return rows.map(fromRow).reduce((sum, row) => together(row, sum));
  }

  /** Writes what waits. Never rejects: while the database is away it stays, and what cannot be written is dropped. */
  flush(): Promise<void> {
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
    this.flushing = this.flushing.then(() => this.writeAll());
    return this.flushing;
  }

  private wait(key: string, waiting: Waiting): void {
    this.waiting.set(key, waiting);
    this.timer ??= setTimeout(() => void this.flush(), FLUSH_MS).unref();
  }

  private async writeAll(): Promise<void> {
    const batch = this.waiting;
    this.waiting = new Map();
    for (const [key, waiting] of batch) {
      try {
        await this.database.transaction((tx) => write(waiting, tx));
      } catch (error) {
        // Its server was deleted meanwhile.
        if (isForeignKeyViolation(error)) continue;
        this.logger.warn({ msg: 'what tools answered could not be written', err: error as Error });
        if (isDatabaseAway(error)) this.wait(key, { ...waiting, ...together(waiting, this.waiting.get(key)) });
      }
    }
  }
}

async function write({ serverId, toolName, ...observed }: Waiting, tx: EntityManager): Promise<void> {
  const week = thisWeek();
  const key = [serverId, toolName, week];
  const { samples, structured, shape } = observed;
  const inserted = await tx.query<unknown[]>(
    `INSERT INTO tool_output_shapes (server_id, tool_name, week, samples, structured, shape)
     SELECT $1, $2, $3, $4, $5, $6
      WHERE (SELECT count(*) FROM tool_output_shapes WHERE server_id = $1 AND week = $3) < ${TOOLS_MAX}
     ON CONFLICT DO NOTHING RETURNING week`,
    [...key, samples, structured, toShapeText(shape)],
  );
  if (inserted.length > 0) {
    await tx.query('DELETE FROM tool_output_shapes WHERE week <= $1', [week - WEEKS]);
    return;
  }
  const where = 'WHERE server_id = $1 AND tool_name = $2 AND week = $3';
  const [row] = await tx.query<Row[]>(
    `SELECT samples, structured, shape FROM tool_output_shapes ${where} FOR UPDATE`,
    key,
  );
  if (!row) return;
  const sum = together(fromRow(row), observed);
  await tx.query(`UPDATE tool_output_shapes SET samples = $4, structured = $5, shape = $6 ${where}`, [
    ...key,
    sum.samples,
    sum.structured,
    toShapeText(sum.shape),
  ]);
}

function fromRow({ samples, structured, shape }: Row): Observed {
  return { samples, structured, shape: parseShape(shape) };
}

function together(one: Observed, other?: Observed): Observed {
  return {
    samples: one.samples + (other?.samples ?? 0),
    structured: one.structured + (other?.structured ?? 0),
    shape: merged(one.shape, other?.shape ?? emptyShape()),
  };
}

function thisWeek(): number {
  return Math.floor(Date.now() / WEEK_MS);
}
