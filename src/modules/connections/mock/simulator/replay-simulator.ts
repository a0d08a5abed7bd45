import { createHash } from 'node:crypto';
import { canonicalJson } from '../../../../platform/text/json.js';
import type { SchemaSimulator } from './schema-simulator.js';
import {
  marked,
  simulatorMark,
  type Answerer,
  type Item,
  type SimulatedCall,
  type Simulator,
  type ToolResult,
} from './simulator.js';
import { counted, countIn } from './world.js';

/** A real call as it was recorded; `result` as JSON text. */
export interface RecordedCall {
  tool: string;
  arguments: Item;
  result: string;
}

/**
 * Answers with what was recorded for the same tool and equal arguments: in the recorded order, and the last one again when
 * there are no more. Calls nobody recorded are answered by the schemas, and say so.
 */
export class ReplaySimulator implements Simulator {
  private readonly results = new Map<string, string[]>();

  constructor(
    private readonly schema: SchemaSimulator,
    recorded: readonly RecordedCall[],
  ) {
    for (const call of recorded) {
      const key = keyOf(call);
      const known = this.results.get(key);
      if (known) known.push(call.result);
      else this.results.set(key, [call.result]);
    }
  }

  prepare(call: SimulatedCall): Promise<Answerer> {
    const key = keyOf(call);
    const results = this.results.get(key);
    return Promise.resolve(results ? (moment) => replayed(call.tool, key, results, moment) : this.unknown(call));
  }

  private unknown(call: SimulatedCall): Answerer {
    const answer = this.schema.answerer(call);
    const mark = { [simulatorMark.by]: 'schema', [simulatorMark.reason]: 'No recorded call has these arguments.' };
    return (moment) => {
      const { result, world } = answer(moment);
      return { result: marked(result, mark), world };
    };
  }
}

function replayed(
  tool: string,
  key: string,
  results: string[],
  { world }: Parameters<Answerer>[0],
): ReturnType<Answerer> {
  const place = countIn(world.replayed, key);
  const text = results[Math.min(place, results.length - 1)];
  const result = marked(JSON.parse(text) as ToolResult, { [simulatorMark.by]: 'recording' });
  return { result, world: counted({ ...world, replayed: { ...world.replayed, [key]: place + 1 } }, tool) };
}

function keyOf({ tool, arguments: given }: { tool: string; arguments: Item }): string {
  return createHash('sha256')
    .update(canonicalJson([tool, given]))
    .digest('hex')
    .slice(0, 32);
}
