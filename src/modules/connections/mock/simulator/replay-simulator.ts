import { createHash } from 'node:crypto';
import { canonicalJson } from '../../../../platform/text/json.js';
import type { SchemaSimulator } from './schema-simulator.js';
import {
  counted,
  fallback,
  marked,
  simulatorMark,
  type Answer,
  type Answerer,
  type SimulatedCall,
  type Simulator,
  type ToolCall,
  type ToolResult,
  type UseCounts,
} from './simulator.js';

/** A real call as it was recorded; `result` as JSON text. */
export interface RecordedCall extends ToolCall {
  result: string;
}

/**
 * Answers with the results recorded for the same tool and equal arguments, in the recorded order; the last one repeats.
 * Calls that were not recorded are answered by the schemas and marked.
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
    return Promise.resolve(
      results
        ? (uses) => replayed(key, results, uses)
        : fallback(this.schema.answerer(call), 'No recorded call has these arguments.'),
    );
  }
}

function replayed(key: string, results: string[], uses: UseCounts): Answer {
  const text = results[Math.min(uses[key] ?? 0, results.length - 1)];
  const result = marked(JSON.parse(text) as ToolResult, { [simulatorMark.by]: 'recording' });
  return { result, uses: counted(uses, key) };
}

function keyOf({ tool, arguments: given }: ToolCall): string {
  return createHash('sha256')
    .update(canonicalJson([tool, given]))
    .digest('hex')
    .slice(0, 32);
}
