/**
 * Simulators answer tool calls in place of a server: from schemas, a fixture, a recording, or a language model. This
 * file has their contract.
 *
 * A call has two steps. `prepare` does the slow part, such as a request to the model, without a lock. The `Answerer`
 * that it returns runs under the lock of the mock's row, at the place of the call among all calls of all processes, and
 * is pure: equal counts of earlier uses give an equal answer. So no call waits for the network of another one.
 *
 * `_meta` of a result says where it came from: `slipway/simulator` (`fixture`, `recording`, `model`, `schema`) and
 * `slipway/reason`, why the scenario did not answer; `slipway/unchecked` of a tool lists patterns that are not checked.
 * A tool's own error is a result with `isError`; nothing is thrown.
 */
import type { JsonObject } from '../../../../platform/text/json.js';

/** A server's scanned lists at the creation of its mock. */
export interface FrozenServer {
  serverInfo: JsonObject | null;
  /** Null: the server does not offer this kind at all. Each item has a `name`. */
  tools: JsonObject[] | null;
  resources: JsonObject[] | null;
  resourceTemplates: JsonObject[] | null;
  prompts: JsonObject[] | null;
  /** Inferred JSON Schemas of the results of tools without an output schema, by tool. */
  inferred?: Record<string, JsonObject>;
}

/** The result of a tool call, as MCP's `CallToolResult`. */
export interface ToolResult {
  content: JsonObject[];
  structuredContent?: unknown;
  isError?: boolean;
  _meta?: JsonObject;
}

/** One call of a tool. */
export interface ToolCall {
  tool: string;
  arguments: JsonObject;
}

/** A real call as it was recorded; `result` as JSON text. */
export interface RecordedCall extends ToolCall {
  result: string;
}

/** An answered call. Arguments and answer are JSON text; null when they were longer than 16 KB. */
export interface PastCall {
  seq: number;
  tool: string;
  arguments: string | null;
  answer: string | null;
}

/** A call of a tool the server has. */
export interface SimulatedCall extends ToolCall {
  /** The newest earlier calls, oldest first. */
  recent: (limit: number) => Promise<PastCall[]>;
  /** Time left for the response. */
  timeoutMs: number;
}

/** How many calls of a mock each fixture rule and each recorded call has answered, by key. The only state of a mock. */
export type UseCounts = Readonly<Record<string, number>>;

/** The response to a call. */
export interface Answer {
  result: ToolResult;
  /** After the call; absent when nothing changed. */
  uses?: UseCounts;
  /** Delay before the result is sent. */
  delayMs?: number;
}

/** Answers a call at its place among all calls of the mock. Pure: equal counts give an equal answer. */
export type Answerer = (uses: UseCounts) => Answer;

/** Answers tool calls in place of a server. */
export interface Simulator {
  prepare(call: SimulatedCall): Promise<Answerer>;
}

/** Members of a result's `_meta` that name the source of a response. */
export const simulatorMark = {
  /** `fixture`, `recording`, `model` or `schema`. Absent when the schemas answer without a scenario. */
  by: 'slipway/simulator',
  /** Why the scenario or the model did not answer. */
  reason: 'slipway/reason',
  /** On a listed tool: the patterns of its schemas that are not checked, each with its reason. */
  unchecked: 'slipway/unchecked',
} as const;

/** The result with more members in its `_meta`. */
export function markResult(result: ToolResult, mark: JsonObject): ToolResult {
  return { ...result, _meta: { ...result._meta, ...mark } };
}

/** The answers of the schemas, marked with the reason why they answer. */
export function fallback(answerer: Answerer, reason: string): Answerer {
  const mark = { [simulatorMark.by]: 'schema', [simulatorMark.reason]: reason };
  return (uses) => {
    const answer = answerer(uses);
    return { ...answer, result: markResult(answer.result, mark) };
  };
}

/** The counts with one more use of `key`. */
export function countUse(uses: UseCounts, key: string): UseCounts {
  return { ...uses, [key]: (uses[key] ?? 0) + 1 };
}

/** A result of one text. */
export function textResult(text: string): ToolResult {
  return { content: [{ type: 'text', text }] };
}

/** A tool's own error. */
export function errorResult(text: string): ToolResult {
  return { ...textResult(text), isError: true };
}

/** A result with structured content, and the same as text for older clients, as MCP requires. */
export function structuredResult(value: unknown): ToolResult {
  return { ...textResult(JSON.stringify(value)), structuredContent: value };
}

/** A name without case and separators: `issueNumber` and `issue_number` are equal. */
export function plainName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '');
}
