import { isObject } from '../../../../platform/text/json.js';
import type { Fixture, FixtureRule } from './fixture.js';
import type { SchemaSimulator } from './schema-simulator.js';
import {
  counted,
  fallback,
  marked,
  simulatorMark,
  type Answerer,
  type SimulatedCall,
  type Simulator,
  type UseCounts,
} from './simulator.js';

/**
 * Answers with the first rule of the tool that matches the arguments and has uses left; with the schemas when there is
 * none, and where a rule names no result. Arguments that the input schema forbids are refused first and use up no rule.
 */
export class FixtureSimulator implements Simulator {
  constructor(
    private readonly schema: SchemaSimulator,
    private readonly fixture: Fixture,
  ) {}

  prepare(call: SimulatedCall): Promise<Answerer> {
    return Promise.resolve(this.answerer(call));
  }

  private answerer(call: SimulatedCall): Answerer {
    if (this.schema.refusal(call)) return this.schema.answerer(call);
    const rules = (this.fixture.get(call.tool) ?? [])
      .map((rule, at) => ({ rule, key: `${call.tool}[${at}]` }))
      .filter(({ rule }) => matches(rule.arguments, call.arguments));
    const bySchema = this.schema.answerer(call);
    const unmatched = fallback(bySchema, 'No rule of the fixture matches this call.');
    return (uses) => {
      const found = rules.find(({ rule, key }) => (uses[key] ?? 0) < rule.times);
      return found ? answerOf(found.rule, bySchema, nextUses(found.rule, found.key, uses)) : unmatched(uses);
    };
  }
}

/** Only limited rules are counted. */
function nextUses({ times }: FixtureRule, key: string, uses: UseCounts): UseCounts {
  return times === Infinity ? uses : counted(uses, key);
}

function answerOf({ result, delayMs }: FixtureRule, bySchema: Answerer, uses: UseCounts): ReturnType<Answerer> {
  const by = result ? 'fixture' : 'schema';
  const sent = marked(result ?? bySchema(uses).result, { [simulatorMark.by]: by });
  return { result: sent, uses, ...(delayMs > 0 && { delayMs }) };
}

/**
 * True when a value has all that is expected: objects may have more members, lists have equal length, other values are
 * equal. Recursion goes as deep as the fixture.
 */
function matches(expected: unknown, value: unknown): boolean {
  if (Array.isArray(expected)) {
    return (
      Array.isArray(value) &&
      value.length === expected.length &&
      expected.every((one, at) => matches(one, (value as unknown[])[at]))
    );
  }
  if (!isObject(expected)) return expected === value;
  return (
    isObject(value) &&
    Object.entries(expected).every(([name, one]) => Object.hasOwn(value, name) && matches(one, value[name]))
  );
}
