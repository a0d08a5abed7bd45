import { createHash } from 'node:crypto';
import { canonicalJson } from '../../../../platform/text/json.js';
import type { SchemaSimulator } from './schema-simulator.js';
import {
  counted,
  fallback,
  marked,
  simulatorMark,
  type Answerer,
  type SimulatedCall,
  type Simulator,
  type ToolCall,
  type ToolResult,
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
      this.results.set(key, [...(this.results.get(key) ?? []), call.result]);
    }
  }

  prepare(call: SimulatedCall): Answerer {
    const key = keyOf(call);
    const results = this.results.get(key);
    if (!results) return fallback(this.schema.prepare(call), 'No recorded call has these arguments.');
    return (uses) => {
      const text = results[Math.min(uses[key] ?? 0, results.length - 1)];
      const result = marked(JSON.parse(text) as ToolResult, { [simulatorMark.by]: 'recording' });
      return { result, uses: counted(uses, key) };
    };
  }
}

function keyOf({ tool, arguments: args }: ToolCall): string {
  return createHash('sha256')
    .update(canonicalJson([tool, args]))
    .digest('hex')
    .slice(0, 32);
}
