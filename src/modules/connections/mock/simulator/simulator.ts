/**
 * Simulators produce the results of tool calls in place of a server, in two steps. `prepare` does the slow part, such as a request to the
 * model, without a lock. The `Answerer` that it returns runs under the lock of the mock's row, at the position of the call among the calls
 * of all processes, and is pure: equal use counts give an equal result. So no call waits for the network of another one.
 *
 * A tool's own error is a result with `isError`; nothing is thrown.
 */
import type { JsonObject } from '../../../../platform/text/json.js';

export interface FrozenServer {
  serverInfo: JsonObject | null;
  /** Null for a kind that the server does not offer. Each item has a `name`. */
  tools: JsonObject[] | null;
  resources: JsonObject[] | null;
  resourceTemplates: JsonObject[] | null;
  prompts: JsonObject[] | null;
  inferred?: Record<string, JsonObject>;
}

export interface ToolResult {
  content: JsonObject[];
  structuredContent?: unknown;
  isError?: boolean;
  _meta?: JsonObject;
}

export interface ToolCall {
  tool: string;
  arguments: JsonObject;
}

/** A real call; `result` as JSON. */
export interface RecordedCall extends ToolCall {
  result: string;
}

/** A finished call. Arguments and result are JSON; null if longer than 16 KB. */
export interface PastCall {
  seq: number;
  tool: string;
  arguments: string | null;
  answer: string | null;
}

export interface SimulatedCall extends ToolCall {
  recent: (limit: number) => Promise<PastCall[]>;
  timeoutMs: number;
}

/** Counts by the key of a fixture rule or recorded call. The only state of a mock. */
export type UseCounts = Readonly<Record<string, number>>;

export interface Answer {
  result: ToolResult;
  /** Counts of used rules; absent if they did not change. */
  uses?: UseCounts;
  delayMs?: number;
}

export type Answerer = (uses: UseCounts) => Answer;

export interface Simulator {
  prepare(call: SimulatedCall): Promise<Answerer>;
}

export const simulatorMark = {
  /** `fixture`, `recording`, `model` or `schema`. Absent for a result of the schemas without a scenario. */
  by: 'slipway/simulator',
  reason: 'slipway/reason',
  /** Lists the patterns that are not checked, each with its reason. */
  unchecked: 'slipway/unchecked',
} as const;

export function markResult(result: ToolResult, mark: JsonObject): ToolResult {
  return { ...result, _meta: { ...result._meta, ...mark } };
}

export function fallback(answerer: Answerer, reason: string): Answerer {
  const mark = { [simulatorMark.by]: 'schema', [simulatorMark.reason]: reason };
  return (uses) => {
    const answer = answerer(uses);
    return { ...answer, result: markResult(answer.result, mark) };
  };
}

export function countUse(uses: UseCounts, key: string): UseCounts {
  return { ...uses, [key]: (uses[key] ?? 0) + 1 };
}

export function textResult(text: string): ToolResult {
  return { content: [{ type: 'text', text }] };
}

export function errorResult(text: string): ToolResult {
  return { ...textResult(text), isError: true };
}

/** Returns a result with structured content, repeated as text for older clients, as MCP requires. */
export function structuredResult(value: unknown): ToolResult {
  return { ...textResult(JSON.stringify(value)), structuredContent: value };
}

/** Removes case and separators: `issueNumber` and `issue_number` become equal. */
export function plainName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '');
}
