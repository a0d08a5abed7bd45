import type { Item } from './item.js';
import type { World } from './world.js';

export type { Item } from './item.js';

/** What a mock knows of the server it stands for: its scanned lists, as they were when the mock was made. */
export interface FrozenServer {
  serverInfo: Item | null;
  /** Null: the server has none of these at all. Each has a `name`. */
  tools: Item[] | null;
  resources: Item[] | null;
  resourceTemplates: Item[] | null;
  prompts: Item[] | null;
  /** JSON Schema of what tools without an output schema were seen to answer, by tool. */
  inferred?: Record<string, Item>;
}

/** The result of a tool call, as MCP's `CallToolResult`. */
export interface ToolResult {
  content: Item[];
  structuredContent?: unknown;
  isError?: boolean;
  _meta?: Item;
}

/** A call that was answered earlier. Arguments and answer are JSON text; null when they were too long to be kept. */
export interface PastCall {
  seq: number;
  tool: string;
  arguments: string | null;
  answer: string | null;
}

/** Which tool is called with what. */
export interface AskedCall {
  tool: string;
  arguments: Item;
}

/** One call of a tool the server has. */
export interface SimulatedCall extends AskedCall {
  /** The newest earlier calls, oldest first. */
  recent: (limit: number) => Promise<PastCall[]>;
  /** How long the answer may take, from now. */
  timeoutMs: number;
}

/** The place of a call in the one order of all calls of a mock. */
export interface Moment {
  /** Counts from 1. */
  seq: number;
  /** After all calls before it. */
  world: World;
}

/** What a call is answered with, and the world after it: the same object when nothing changed. */
export interface Answered {
  result: ToolResult;
  world: World;
}

/** Makes the answer once the call's place is known. Pure: the same moment gives the same answer. */
export type Answerer = (moment: Moment) => Answered;

/**
 * Answers tool calls in place of a server. What takes time is done first; the order of calls is settled afterwards, so
 * that no call waits for another one's network.
 */
export interface Simulator {
  prepare(call: SimulatedCall): Promise<Answerer>;
}

/** The calls of one mock, in one order for all processes. */
export interface MockHistory {
  /** The newest calls, oldest first. */
  recent(limit: number): Promise<PastCall[]>;
  /** Puts a call behind all others, exactly once, and answers it there. */
  append(call: AskedCall, answer: Answerer): Promise<ToolResult>;
}

/** Members of a result's `_meta` that say where an answer comes from. */
export const simulatorMark = {
  /** `schema`, `model` or `recording`. Absent while the schema simulator answers and nothing else was asked for. */
  by: 'slipway/simulator',
  /** Why it was not the one that was asked for. */
  reason: 'slipway/reason',
} as const;

/** The result with a member more in its `_meta`. */
export function marked(result: ToolResult, mark: Item): ToolResult {
  return { ...result, _meta: { ...result._meta, ...mark } };
}

/** A result that is one text. */
export function textResult(text: string): ToolResult {
  return { content: [{ type: 'text', text }] };
}

/** A tool's own error. */
export function errorResult(text: string): ToolResult {
  return { ...textResult(text), isError: true };
}

/** A result whose structured form stands beside its text, as MCP wants. */
export function structuredResult(value: unknown): ToolResult {
  return { ...textResult(JSON.stringify(value)), structuredContent: value };
}
