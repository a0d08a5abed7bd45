import { Injectable, Logger, type BeforeApplicationShutdown } from '@nestjs/common';
import { toStorableText } from '../../platform/database/storable.js';
import { RowCache } from '../../platform/database/row-cache.js';
import { sampleOf } from './answer-sample.js';
import { Sampler } from './sampler.js';
import { toJsonSchema } from './shape-schema.js';
import { publishableShape } from './publishable-shape.js';
import { ToolShapeRepository } from './tool-shape.repository.js';

/** A longer answer is not looked at; that of most tools has 1 to 10 KB. */
const ANSWER_CHARS_MAX = 64 * 1024;

/** A longer name is none that a tool was given. */
const TOOL_NAME_CHARS_MAX = 256;

/** Answers that wait to be looked at. More are dropped: they come again. */
const WAITING_MAX = 256;
const WAITING_CHARS_MAX = 4 * 1024 * 1024;

/** How long answers may be looked at in one go, and the pause after it: at most 4 % of the process' time. */
const SLICE_MS = 2;
const PAUSE_MS = 50;

/** An inferred schema is believed for so long, in one process. */
const INFERRED_TTL_MS = 60_000;
const INFERRED_MAX = 1_000;

interface Waiting {
  serverId: string;
  toolName: string;
  result: string;
}

/** Looks at what tools answer, to learn what their answers look like. */
@Injectable()
export class ToolOutputsService implements BeforeApplicationShutdown {
  private readonly logger = new Logger('tool schemas');
  private readonly gate = new Sampler();
  private waiting: Waiting[] = [];
  private waitingChars = 0;
  /** Answers that were to be looked at and found no room, since the process started. */
  dropped = 0;
  private timer: NodeJS.Timeout | null = null;
  private readonly known = new RowCache((key) => this.infer(key), { max: INFERRED_MAX, ttlMs: INFERRED_TTL_MS });

  constructor(private readonly shapes: ToolShapeRepository) {}

  /**
   * Shows it one answer to `tools/call`. Stands on the way of calls: it never waits, never throws, and looks at the answer
   * later, if at all. Of each tool the first 20 answers of an hour and then every 100th, up to 200, in each process.
   *
   * @param result the CallToolResult as JSON text
   */
  observe(serverId: string, toolName: string, result: string): void {
    if (result.length > ANSWER_CHARS_MAX || toolName.length > TOOL_NAME_CHARS_MAX) return;
    if (!this.gate.isWanted(`${serverId} ${toolName}`)) return;
    if (this.waiting.length >= WAITING_MAX || this.waitingChars + result.length > WAITING_CHARS_MAX) {
      this.dropped += 1;
      return;
    }
    this.waiting.push({ serverId, toolName, result });
    this.waitingChars += result.length;
    this.timer ??= setTimeout(() => this.lookForAWhile(), PAUSE_MS).unref();
  }

  /**
   * JSON Schema (2020-12) of what a tool's answers look like, for whoever may use the tool: only of tools that answer with
   * objects, and without what was seen fewer than 3 times. Null when nothing is left. At most a minute old.
   */
  async inferred(serverId: string, toolName: string): Promise<Record<string, unknown> | null> {
    const known = await this.known.get(JSON.stringify([serverId, toolName]));
    return known?.schema ?? null;
  }

  /** Looks at all that waits and writes it. */
  async settle(): Promise<void> {
    while (this.waiting.length > 0) this.look();
    await this.shapes.flush();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.settle();
  }

  private lookForAWhile(): void {
    const end = performance.now() + SLICE_MS;
    while (this.waiting.length > 0 && performance.now() < end) this.look();
    this.timer = this.waiting.length > 0 ? setTimeout(() => this.lookForAWhile(), PAUSE_MS).unref() : null;
  }

  /** Never throws: nobody would catch it, and the process would end for one answer. */
  private look(): void {
    const next = this.waiting.shift();
    if (!next) return;
    this.waitingChars -= next.result.length;
    try {
      const sample = sampleOf(next.result);
      if (sample) this.shapes.add(next.serverId, toStorableText(next.toolName), sample);
    } catch (error) {
      this.logger.warn({ msg: 'an answer could not be looked at', err: error });
    }
  }

  private async infer(key: string): Promise<{ schema: Record<string, unknown> | null }> {
    const [serverId, toolName] = JSON.parse(key) as [string, string];
    const observed = await this.shapes.find(serverId, toStorableText(toolName));
    const shape = observed && publishableShape(observed.shape);
    return { schema: shape && toJsonSchema(shape) };
  }
}
