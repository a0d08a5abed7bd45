import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { WriteBehind } from '../../platform/database/write-behind.js';
import { isDatabaseUnreachable, isForeignKeyViolation } from '../../platform/database/postgres-errors.js';
import { emptyShape, mergeShapes, shapeOf, type Shape } from './shape.js';
import { deletionTime } from '../../platform/database/deletion-time.js';

/** Weeks in use, including the current one: samples expire after 28 to 35 days. */
const WEEKS = 5;
const WEEK_MS = 7 * 24 * 3_600_000;

/** Maximum number of tools of one server, whose shapes take at most 90 MB before compression, usually 2 MB. */
const TOOLS_MAX = 200;

export interface Observed {
  samples: number;
  shape: Shape;
}

interface BufferedSamples extends Observed {
  serverId: string;
  toolName: string;
}

interface Row {
  samples: number;
  shape: string;
}

/**
 * Samples of a process are buffered and then added to the row of this week under its lock, so that concurrent processes
 * lose none.
 */
@Injectable()
export class ToolShapesRepository implements OnApplicationShutdown {
  private readonly logger = new Logger('tool schemas');
  readonly buffer = new WriteBehind<string, BufferedSamples>('tool schemas', (batch) => this.writeAll(batch), {
    rowsMax: TOOLS_MAX,
    merge: (newer, older) => ({ ...newer, ...addObserved(newer, older) }),
  });

  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /** Drops the sample if the buffer is full. */
  add(serverId: string, toolName: string, value: unknown): void {
    const sample = { samples: 1, shape: shapeOf(value) };
    this.buffer.set(`${serverId} ${toolName}`, { serverId, toolName, ...addObserved(sample) });
  }

  /** Returns the samples of a tool; null without recent ones. */
  async find(serverId: string, toolName: string): Promise<Observed | null> {
    const rows = await this.database.query<Row[]>(
      `SELECT samples, shape FROM tool_output_shapes
        WHERE server_id = $1 AND tool_name = $2 AND week > $3 ORDER BY week`,
      [serverId, toolName, weekOf(Date.now()) - WEEKS],
    );
    if (rows.length === 0) return null;
    return rows.map(fromRow).reduce((sum, row) => addObserved(row, sum));
  }

  onApplicationShutdown(): Promise<void> {
    return this.buffer.onApplicationShutdown();
  }

  /** Writes samples. The promise never rejects: samples are buffered again while the database is unavailable, and dropped on other errors. */
  private async writeAll(batch: Map<string, BufferedSamples>): Promise<void> {
    for (const [key, samples] of batch) {
      try {
        await this.database.transaction((tx) => write(samples, tx));
      } catch (error) {
        // The server was deleted.
        if (isForeignKeyViolation(error)) continue;
        this.logger.warn({ msg: 'samples of tool results could not be written', err: error as Error });
        if (isDatabaseUnreachable(error)) this.buffer.set(key, samples);
      }
    }
  }
}

async function write({ serverId, toolName, ...observed }: BufferedSamples, tx: EntityManager): Promise<void> {
  const week = weekOf(Date.now());
  const key = [serverId, toolName, week];
  const { samples, shape } = observed;
  const inserted = await tx.query<unknown[]>(
    `INSERT INTO tool_output_shapes (server_id, tool_name, week, samples, shape)
     SELECT $1, $2, $3, $4, $5
      WHERE (SELECT count(*) FROM tool_output_shapes WHERE server_id = $1 AND week = $3) < ${TOOLS_MAX}
     ON CONFLICT DO NOTHING RETURNING week`,
    [...key, samples, toShapeText(shape)],
  );
  if (inserted.length > 0) {
    const now = await deletionTime(tx);
    if (now) await tx.query('DELETE FROM tool_output_shapes WHERE week <= $1', [weekOf(now.getTime()) - WEEKS]);
    return;
  }
  const where = 'WHERE server_id = $1 AND tool_name = $2 AND week = $3';
  const [row] = await tx.query<Row[]>(`SELECT samples, shape FROM tool_output_shapes ${where} FOR UPDATE`, key);
  if (!row) return;
  const sum = addObserved(fromRow(row), observed);
  await tx.query(`UPDATE tool_output_shapes SET samples = $4, shape = $5 ${where}`, [
    ...key,
    sum.samples,
    toShapeText(sum.shape),
  ]);
}

function fromRow({ samples, shape }: Row): Observed {
  return { samples, shape: parseShape(shape) };
}

function addObserved(observed: Observed, other?: Observed): Observed {
  return {
    samples: observed.samples + (other?.samples ?? 0),
    shape: mergeShapes(observed.shape, other?.shape ?? emptyShape()),
  };
}

function weekOf(time: number): number {
  return Math.floor(time / WEEK_MS);
}

/** Maps that are lists of pairs in JSON, because a member can be named `__proto__`. */
const MAPS = new Set(['fields', 'formats', 'words']);

export function toShapeText(shape: Shape): string {
  return JSON.stringify(shape, (_name, value: unknown) => (value instanceof Map ? [...value] : value));
}

export function parseShape(text: string): Shape {
  return JSON.parse(text, (name, value: unknown) =>
    MAPS.has(name) && value !== null ? new Map(value as [string, unknown][]) : value,
  ) as Shape;
}
