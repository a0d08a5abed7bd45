import { canonicalJson, type JsonObject, isObject } from '../../../../platform/text/json.js';
import { plainName } from './sample-text.js';
import { satisfyingValue, UnsatisfiableError } from './schema-value.js';
import {
  errorResult,
  structuredResult,
  textResult,
  type Answerer,
  type FrozenServer,
  type SimulatedCall,
  type Simulator,
  type ToolCall,
  type ToolResult,
} from './simulator.js';
import { schemaCheck, type SchemaCheck } from '../../../../platform/json-schema/schema-check.js';

/** One tool of a frozen server with its schemas, which are compiled on first use. */
export class ToolModel {
  readonly name: string;
  /** The schema of structured results: the declared one, else the inferred one. Null without any. */
  readonly outputSchema: JsonObject | null;
  private checks: { input: SchemaCheck | null; output: SchemaCheck | null } | null = null;

  /** @param inferred the schema of results observed so far, for a tool that declares none */
  constructor(
    readonly tool: JsonObject,
    inferred: JsonObject | null = null,
  ) {
    this.name = String(tool.name);
    // Structured results are objects.
    this.outputSchema = isObject(tool.outputSchema) ? tool.outputSchema : inferred?.type === 'object' ? inferred : null;
  }

  get checkInput(): SchemaCheck | null {
    return this.compiled().input;
  }

  get checkOutput(): SchemaCheck | null {
    return this.compiled().output;
  }

  private compiled(): { input: SchemaCheck | null; output: SchemaCheck | null } {
    this.checks ??= { input: schemaCheck(this.tool.inputSchema), output: schemaCheck(this.outputSchema) };
    return this.checks;
  }
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
  private readonly tools: ReadonlyMap<string, ToolModel>;
  private readonly seed: string;

  constructor(server: FrozenServer, { seed, scenario }: MockSeed) {
    const modelOf = (tool: JsonObject) => new ToolModel(tool, server.inferred?.[String(tool.name)]);
    this.tools = new Map((server.tools ?? []).map((tool) => [String(tool.name), modelOf(tool)]));
    this.seed = `${seed}\0${scenario ?? ''}`;
  }

  prepare(call: SimulatedCall): Promise<Answerer> {
    return Promise.resolve(this.answerer(call));
  }

  /** The same as {@link prepare}, at once. */
  answerer(call: ToolCall): Answerer {
    const result = this.refusal(call) ?? this.madeUp(call);
    return (uses) => ({ result, uses });
  }

  /** The error result for arguments that the input schema forbids, in the words of SDK servers; null when they are allowed. */
  refusal({ tool, arguments: given }: ToolCall): ToolResult | null {
    const fault = this.tool(tool).checkInput?.(given) ?? null;
    if (fault === null) return null;
    return errorResult(`MCP error -32602: Input validation error: Invalid arguments for tool ${tool}: ${fault}`);
  }

  tool(name: string): ToolModel {
    const tool = this.tools.get(name);
    if (!tool) throw new Error(`The simulated server has no tool ${name}`);
    return tool;
  }

  /** A value of the output schema, which repeats arguments under equal names; without a schema the arguments as text. */
  private madeUp({ tool: name, arguments: given }: ToolCall): ToolResult {
    const tool = this.tool(name);
    if (!tool.outputSchema) return textResult(textOf(name, given));
    const seed = `${this.seed}\0${name}\0${canonicalJson(given)}`;
    try {
      return structuredResult(satisfyingValue(tool.outputSchema, tool.checkOutput, { seed, given }));
    } catch (error) {
      if (!(error instanceof UnsatisfiableError)) throw error;
      const why = 'its output schema asks for something the simulator cannot make.';
      return errorResult(`The simulated tool ${name} has no answer: ${why}`);
    }
  }
}

function textOf(tool: string, given: JsonObject): string {
  const entries = Object.entries(given);
  const [only] = entries;
  if (only === undefined) return `${tool}: done.`;
  const isEcho = /echo|say|print/i.test(tool) && /^(message|text|input|value)$/.test(plainName(only[0]));
  if (isEcho && entries.length === 1) return String(only[1]);
  const texts = entries.map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`);
  return `${tool} (${texts.join(', ')})`;
}
