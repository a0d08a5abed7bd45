/**
 * Samples the results of tools; output schemas of tools that declare none are inferred from them.
 *
 * In each process the first 20 results of a tool in an hour are sampled, then every 100th, at most 200. `observe` is on
 * the call path: it only buffers.
 *
 * Other callers see a schema only if results are objects, without members that were seen fewer than 3 times; it is at
 * most a minute old. Results that are errors, incomplete, above 64 KB or not JSON give no sample; a full buffer drops
 * samples, which a metric counts.
 */
import { Injectable, Logger, type BeforeApplicationShutdown } from '@nestjs/common';
import { growingLru } from '../../platform/limits/growing-lru.js';
import { toStorableText } from '../../platform/database/storable.js';
import { RowCache } from '../../platform/database/row-cache.js';
import { isObject } from '../../platform/text/json.js';
import { Metrics } from '../../platform/telemetry/metrics.js';
import { publishableShape, toJsonSchema } from './schema-inference.js';
import { ToolShapesRepository } from './tool-shape.repository.js';
import { jsonIn } from '../../platform/text/json-bounds.js';

const FIRST_OF_HOUR = 20;
const THEN_ONE_OF = 100;
const OF_HOUR_MAX = 200;

const HOUR_MS = 3_600_000;

class Sampler {
  private readonly tools = growingLru<{ hour: number; seen: number }>();

  /** @returns true if the result should be sampled */
  select(tool: string, now = Date.now()): boolean {
    const hour = Math.floor(now / HOUR_MS);
    let count = this.tools.get(tool);
    if (!count) this.tools.set(tool, (count = { hour, seen: 0 }));
    if (count.hour !== hour) Object.assign(count, { hour, seen: 0 });
    count.seen += 1;
    const later = count.seen - FIRST_OF_HOUR;
    return later <= 0 || (later % THEN_ONE_OF === 0 && later / THEN_ONE_OF <= OF_HOUR_MAX - FIRST_OF_HOUR);
  }
}

/** Maximum length of a sampled result; most have 1 to 10 KB. */
const RESULT_CHARS_MAX = 64 * 1024;

const TOOL_NAME_CHARS_MAX = 256;

/** Maximum size of the buffer; further results are dropped, since later ones have the same shape. */
const BUFFER_CHARS_MAX = 4 * 1024 * 1024;

/** Counts characters, in addition to those of the string. */
const ENTRY_CHARS = 1_000;

/** Time slice of sampling, which takes at most 4 % of the time of the process. */
const SLICE_MS = 2;
const PAUSE_MS = 50;

const INFERRED_TTL_MS = 60_000;
const INFERRED_MAX = 1_000;

interface BufferedResult {
  serverId: string;
  toolName: string;
  result: string;
}

@Injectable()
export class ToolOutputsService implements BeforeApplicationShutdown {
  private readonly logger = new Logger('tool schemas');
  private readonly sampler = new Sampler();
  private buffer: BufferedResult[] = [];
  private bufferChars = 0;
  /** Number of results dropped since the process started, because the buffer was full. */
  private dropped = 0;
  private timer: NodeJS.Timeout | null = null;
  private readonly schemas = new RowCache((key) => this.infer(key), { max: INFERRED_MAX, ttlMs: INFERRED_TTL_MS });

  constructor(
    private readonly toolShapesRepository: ToolShapesRepository,
    metrics: Metrics,
  ) {
    metrics.counter(
      'slipway_tool_samples_dropped_total',
      'Tool results that were selected as samples and dropped because a buffer was full.',
      () => this.dropped + toolShapesRepository.buffer.dropped,
    );
  }

  /**
   * Runs on the call path: it only buffers, and never waits or throws.
   *
   * @param result the CallToolResult as JSON
   */
  observe(serverId: string, toolName: string, result: string): void {
    if (result.length > RESULT_CHARS_MAX || toolName.length > TOOL_NAME_CHARS_MAX) return;
    if (!this.sampler.select(`${serverId} ${toolName}`)) return;
    if (this.bufferChars + result.length > BUFFER_CHARS_MAX) {
      this.dropped += 1;
      return;
    }
    this.buffer.push({ serverId, toolName, result });
    this.bufferChars += ENTRY_CHARS + result.length;
    this.timer ??= setTimeout(() => this.processSlice(), PAUSE_MS).unref();
  }

  /**
   * Infers a schema (JSON Schema 2020-12) for all callers of the tool: only if results are objects, and without members
   * observed fewer than 3 times. Null if nothing is left. The schema is at most a minute old.
   */
  async inferred(serverId: string, toolName: string): Promise<Record<string, unknown> | null> {
    const cached = await this.schemas.get(JSON.stringify([serverId, toolName]));
    return cached?.schema ?? null;
  }

  async settle(): Promise<void> {
    while (this.buffer.length > 0) this.processNext();
    await this.toolShapesRepository.buffer.flush();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.settle();
  }

  private processSlice(): void {
    const end = performance.now() + SLICE_MS;
    while (this.buffer.length > 0 && performance.now() < end) this.processNext();
    this.timer = this.buffer.length > 0 ? setTimeout(() => this.processSlice(), PAUSE_MS).unref() : null;
  }

  /** Never throws: an uncaught error in a timer crashes the process. */
  private processNext(): void {
    const next = this.buffer.shift();
    if (!next) return;
    this.bufferChars -= ENTRY_CHARS + next.result.length;
    try {
      const sample = sampleOf(next.result);
      if (sample !== undefined) this.toolShapesRepository.add(next.serverId, toStorableText(next.toolName), sample);
    } catch (error) {
      this.logger.warn({ msg: 'a tool result could not be sampled', err: error });
    }
  }

  private async infer(key: string): Promise<{ schema: Record<string, unknown> | null }> {
    const [serverId, toolName] = JSON.parse(key) as [string, string];
    const observed = await this.toolShapesRepository.find(serverId, toStorableText(toolName));
    const shape = observed && publishableShape(observed.shape);
    return { schema: shape && toJsonSchema(shape) };
  }
}

/**
 * Returns the `structuredContent`; else the first text as JSON, if that is an object or a list; else the text. Undefined for an
 * error, an incomplete result (`input_required`, a task), one without text, and invalid JSON.
 */
function sampleOf(resultJson: string): unknown {
  const result = jsonIn(resultJson);
  if (!isObject(result) || result.isError === true) return undefined;
  if (result.resultType !== undefined && result.resultType !== 'complete') return undefined;
  const { structuredContent, content } = result;
  if (structuredContent !== undefined) return structuredContent;
  if (!Array.isArray(content)) return undefined;
  const part: unknown = content.find((item) => isObject(item) && item.type === 'text' && typeof item.text === 'string');
  if (!isObject(part)) return undefined;
  const value = jsonIn(part.text as string);
  return typeof value === 'object' && value !== null ? value : part.text;
}
