import { DEPTH_MAX } from '../../../../platform/database/storable.js';
import { InvalidInputError } from '../../../../platform/errors/domain-error.js';
import { isObject, isWithinDepth, pathStep, type JsonObject } from '../../../../platform/text/json.js';
import { quote } from '../../../../platform/text/quoted.js';
import {
  errorResult,
  structuredResult,
  textResult,
  type ToolResult,
  countUse,
  fallback,
  markResult,
  simulatorMark,
  type Answerer,
  type SimulatedCall,
  type Simulator,
} from './simulator.js';
import type { SchemaSimulator } from './schema-simulator.js';
import { parseBounded } from '../../../../platform/text/json-bounds.js';

/** A simulated state; a number is the HTTP status that the server of the mock returns. */
export type MockState = 'auth_required' | 'input_required' | '429' | '502';

type Scenario =
  | { kind: 'none' }
  | { kind: 'replay'; connectionId: string }
  | { kind: 'fixture'; fixture: Fixture }
  /** `fail:{state}`: every request fails as in a connection in this state. */
  | { kind: 'failure'; state: MockState }
  /** Any other string is read by the language model. */
  | { kind: 'prose' };

/**
 * Applies the first rule of the tool that matches and has uses left, otherwise the schemas. Arguments that the input schema forbids are
 * rejected first and use up no rule.
 */
export class FixtureSimulator implements Simulator {
  constructor(
    private readonly schema: SchemaSimulator,
    private readonly fixture: Fixture,
  ) {}

  async prepare(call: SimulatedCall): Promise<Answerer> {
    const refusal = await this.schema.refusal(call);
    if (refusal) return refusal;
    const rules = (this.fixture.get(call.tool) ?? [])
      .map((rule, at) => ({ rule, key: `${call.tool}[${at}]` }))
      .filter(({ rule }) => matches(rule.arguments, call.arguments));
    const bySchema = await this.schema.accepted(call);
    const unmatched = fallback(bySchema, 'No rule of the fixture matches this call.');
    return (uses) => {
      const match = rules.find(({ rule, key }) => (uses[key] ?? 0) < rule.times);
      if (!match) return unmatched(uses);
      const { result, delayMs, times } = match.rule;
      const sent = markResult(result ?? bySchema(uses).result, { [simulatorMark.by]: result ? 'fixture' : 'schema' });
      // Only limited rules are counted.
      return {
        result: sent,
        ...(delayMs > 0 && { delayMs }),
        ...(times < Infinity && { uses: countUse(uses, match.key) }),
      };
    };
  }
}

export interface FixtureRule {
  /** Values that the arguments of a call must have; an empty object matches any arguments. */
  arguments: JsonObject;
  /** The result; null for a value generated from the tool's schema. */
  result: ToolResult | null;
  delayMs: number;
  /** The number of calls, after which the next matching rule applies. Infinity without a limit. */
  times: number;
}

export type Fixture = ReadonlyMap<string, readonly FixtureRule[]>;

const DELAY_MS_MAX = 60_000;
const TIMES_MAX = 1_000_000;

/**
 * @returns null unless the scenario is a JSON object with `tools`
 *
 * @throws InvalidInputError with the JSON path of the problem
 */
export function parseFixture(scenario: string): Fixture | null {
  const value = parseScenario(scenario);
  if (!isObject(value) || !Object.hasOwn(value, 'tools')) return null;
  if (!isWithinDepth(value, DEPTH_MAX)) fail('$', `must not be nested deeper than ${DEPTH_MAX} levels`);
  requireMembers(value, ['tools'], '$');
  if (!isObject(value.tools)) return fail('$.tools', 'must be an object with a list of rules for each tool');
  return new Map(
    Object.entries(value.tools).map(([tool, rules]) => {
      const path = `$.tools${pathStep(tool, quote)}`;
      if (!Array.isArray(rules)) return fail(path, 'must be a list of rules');
      return [tool, rules.map((rule: unknown, at) => readRule(rule, `${path}[${at}]`))];
    }),
  );
}

/** @throws InvalidInputError for a tool that the server does not have */
export function requireTools(fixture: Fixture, tools: readonly JsonObject[]): void {
  for (const tool of fixture.keys()) {
    if (!tools.some(({ name }) => name === tool))
      fail(`$.tools${pathStep(tool, quote)}`, 'names a tool the server does not have');
  }
}

/** Rejects a broken fixture: read as prose, it would silently do nothing. */
function parseScenario(scenario: string): unknown {
  try {
    return parseBounded(scenario);
  } catch (error) {
    if (!/^\s*\{[^]*"tools"/.test(scenario)) return null;
    return fail('$', `is not JSON: ${(error as Error).message.slice(0, 200)}`);
  }
}

function readRule(rule: unknown, path: string): FixtureRule {
  if (!isObject(rule)) return fail(path, 'must be an object');
  requireMembers(rule, ['arguments', 'result', 'error', 'delayMs', 'times'], path);
  const { arguments: expected = {}, delayMs = 0, times } = rule;
  if (!isObject(expected)) fail(`${path}.arguments`, 'must be an object');
  return {
    arguments: expected,
    result: readResult(rule, path),
    delayMs: readCount(delayMs, 0, DELAY_MS_MAX, `${path}.delayMs`),
    times: times === undefined ? Infinity : readCount(times, 1, TIMES_MAX, `${path}.times`),
  };
}

function readResult({ result, error }: JsonObject, path: string): ToolResult | null {
  if (error !== undefined) {
    if (result !== undefined) fail(path, 'must not have both result and error');
    return typeof error === 'string' ? errorResult(error) : fail(`${path}.error`, 'must be a string');
  }
  if (result === undefined) return null;
  if (typeof result === 'string') return textResult(result);
  return isObject(result) ? readToolResult(result, `${path}.result`) : fail(`${path}.result`, RESULT_FORM);
}

const RESULT_FORM = 'must be a string, or an MCP result: an object with content or structuredContent';

/** Reads a result. Without `content`, it repeats its structured content as text. */
function readToolResult(result: JsonObject, path: string): ToolResult {
  requireMembers(result, ['content', 'structuredContent', 'isError', '_meta'], path);
  const { content, structuredContent, isError, _meta } = result;
  if (content === undefined && structuredContent === undefined) fail(path, RESULT_FORM);
  if (isError !== undefined && typeof isError !== 'boolean') fail(`${path}.isError`, 'must be true or false');
  if (_meta !== undefined && !isObject(_meta)) fail(`${path}._meta`, 'must be an object');
  if (content === undefined) return { ...result, ...structuredResult(structuredContent) };
  if (!Array.isArray(content)) return fail(`${path}.content`, 'must be a list of content blocks');
  content.forEach((block: unknown, at) => {
    if (!isObject(block) || typeof block.type !== 'string') {
      fail(`${path}.content[${at}]`, 'must be a content block of MCP: an object with a type');
    }
  });
  return { ...result, content: content as JsonObject[] };
}

function readCount(value: unknown, min: number, max: number, path: string): number {
  const isCount = Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
  return isCount ? (value as number) : fail(path, `must be a whole number from ${min} to ${max}`);
}

function requireMembers(value: JsonObject, names: string[], path: string): void {
  const unknown = Object.keys(value).find((name) => !names.includes(name));
  if (unknown !== undefined) fail(path + pathStep(unknown, quote), `is unknown: expected ${names.join(', ')}`);
}

function fail(path: string, problem: string): never {
  throw new InvalidInputError(`mock.scenario: ${path} ${problem}`);
}

/**
 * Objects can have more members than expected, lists must have equal length, other values must be equal. Recursion goes as deep as the
 * fixture.
 */
function matches(expected: unknown, value: unknown): boolean {
  if (Array.isArray(expected)) {
    return (
      Array.isArray(value) &&
      value.length === expected.length &&
      expected.every((item, at) => matches(item, (value as unknown[])[at]))
    );
  }
  if (!isObject(expected)) return expected === value;
  return (
    isObject(value) &&
    Object.entries(expected).every(([name, member]) => Object.hasOwn(value, name) && matches(member, value[name]))
  );
}

/** @throws InvalidInputError for a broken fixture */
export function readScenario(text: string | null | undefined): Scenario {
  if (text === null || text === undefined || text.trim() === '') return { kind: 'none' };
  const replayed = /^replay:(.*)$/s.exec(text)?.[1];
  if (replayed !== undefined) return { kind: 'replay', connectionId: replayed.trim() };
  const state = /^\s*fail:(auth_required|input_required|429|502)\s*$/.exec(text)?.[1];
  if (state !== undefined) return { kind: 'failure', state: state as MockState };
  const fixture = parseFixture(text);
  return fixture ? { kind: 'fixture', fixture } : { kind: 'prose' };
}
