import { schemaCheck, type SchemaCheck } from '../../../../platform/json-schema/schema-check.js';
import { canonicalJson, isObject, type JsonObject } from '../../../../platform/text/json.js';
import { plainName } from './sample-text.js';
import { satisfyingValue, UnsatisfiableError } from './schema-value.js';
import {
  errorResult,
  structuredResult,
  textResult,
  type Answerer,
  type FrozenServer,
  type Simulator,
  type ToolCall,
  type ToolResult,
} from './simulator.js';

/** One tool of a frozen server with its compiled schemas. */
export interface ToolModel {
  tool: JsonObject;
  checkInput: SchemaCheck | null;
  /** The schema of structured results: the declared one, else the inferred one. Null without any. */
  outputSchema: JsonObject | null;
  checkOutput: SchemaCheck | null;
}

/** Inputs of a mock's values. Equal seeds give equal values. */
export interface MockSeed {
  seed: string;
  /** Any text; null without a scenario. */
  scenario: string | null;
}

/**
 * Answers from the schemas of a server alone: no network, no clock, no randomness, no state. A result is a function of
 * seed, scenario, tool and arguments.
 */
export class SchemaSimulator implements Simulator {
  /** Compiled on first use. */
  private readonly models = new Map<string, ToolModel>();
  private readonly seed: string;

  constructor(
    private readonly server: FrozenServer,
    { seed, scenario }: MockSeed,
  ) {
    this.seed = `${seed}\0${scenario ?? ''}`;
  }

  prepare(call: ToolCall): Answerer {
    const result = this.refusal(call) ?? this.makeResult(call);
    return () => ({ result });
  }

  /** The error result for arguments that the input schema forbids, as SDK servers write it; null for allowed ones. */
  refusal({ tool, arguments: args }: ToolCall): ToolResult | null {
    const fault = this.tool(tool).checkInput?.(args) ?? null;
    if (fault === null) return null;
    return errorResult(`MCP error -32602: Input validation error: Invalid arguments for tool ${tool}: ${fault}`);
  }

  tool(name: string): ToolModel {
    const model = this.models.get(name) ?? this.modelOf(name);
    this.models.set(name, model);
    return model;
  }

  private modelOf(name: string): ToolModel {
    const tool = this.server.tools?.find((one) => one.name === name);
    if (!tool) throw new Error(`The simulated server has no tool ${name}`);
    const inferred = this.server.inferred?.[name];
    // Structured results are objects.
    const inferredObject = inferred?.type === 'object' ? inferred : null;
    const outputSchema = isObject(tool.outputSchema) ? tool.outputSchema : inferredObject;
    return { tool, outputSchema, checkInput: schemaCheck(tool.inputSchema), checkOutput: schemaCheck(outputSchema) };
  }

  /** A value of the output schema, which repeats arguments under equal names; without a schema the arguments as text. */
  private makeResult({ tool: name, arguments: args }: ToolCall): ToolResult {
    const { outputSchema, checkOutput } = this.tool(name);
    if (!outputSchema) return textResult(textOf(name, args));
    const seed = `${this.seed}\0${name}\0${canonicalJson(args)}`;
    try {
      return structuredResult(satisfyingValue(outputSchema, checkOutput, { seed, known: args }));
    } catch (error) {
      if (!(error instanceof UnsatisfiableError)) throw error;
      const why = 'the simulator cannot make a value of its output schema.';
      return errorResult(`The simulated tool ${name} has no answer: ${why}`);
    }
  }
}

function textOf(tool: string, args: JsonObject): string {
  const entries = Object.entries(args);
  const [only] = entries;
  if (only === undefined) return `${tool}: done.`;
  const isEcho = /echo|say|print/i.test(tool) && /^(message|text|input|value)$/.test(plainName(only[0]));
  if (isEcho && entries.length === 1) return String(only[1]);
  const texts = entries.map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`);
  return `${tool} (${texts.join(', ')})`;
}
