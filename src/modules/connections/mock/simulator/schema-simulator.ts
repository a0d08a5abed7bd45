import type { job as checkJob } from '../../../../platform/json-schema/schema-check.job.js';
import { tenantThread, ThreadJobEndedError } from '../../../../platform/threads/fair-thread.js';
import { isObject, type JsonObject } from '../../../../platform/text/json.js';
import type { job as valueJob } from './schema-value.job.js';
import {
  errorResult,
  plainName,
  structuredResult,
  textResult,
  type Answerer,
  type FrozenServer,
  type Simulator,
  type ToolCall,
  type ToolResult,
} from './simulator.js';

const CHECK = 'platform/json-schema/schema-check.job.js';
const VALUE = 'modules/connections/mock/simulator/schema-value.job.js';

const TOO_SLOW = 'take too long to check against the schema';

export interface ToolModel {
  tool: JsonObject;
  inputSchema: string;
  /** The declared output schema, or else the inferred one; null without any. */
  outputSchema: string | null;
}

/** Simulates tools without network, clock, randomness or state: a result is a function of tool and arguments. */
export class SchemaSimulator implements Simulator {
  private readonly models = new Map<string, ToolModel>();

  /** @param namespaceId schemas are compiled in the turn of this namespace */
  constructor(
    private readonly server: FrozenServer,
    private readonly namespaceId: string,
  ) {}

  async prepare(call: ToolCall): Promise<Answerer> {
    return (await this.refusal(call)) ?? this.accepted(call);
  }

  /** Returns the error for invalid arguments, worded as in SDK servers. */
  async refusal({ tool, arguments: args }: ToolCall): Promise<Answerer | null> {
    const { inputSchema } = this.tool(tool);
    const refuse = (reason: string) => toAnswerer(errorResult(`MCP error -32602: Input validation error: ${reason}`));
    const fault = await this.check(inputSchema, args);
    if (fault === TOO_SLOW) return refuse(`The arguments for tool ${tool} ${TOO_SLOW}`);
    return fault ? refuse(`Invalid arguments for tool ${tool}: ${fault}`) : null;
  }

  async outputFault({ outputSchema }: ToolModel, value: unknown): Promise<string | null> {
    const fault = outputSchema === null ? null : await this.check(outputSchema, value);
    return fault === undefined ? 'the output schema cannot be checked' : fault;
  }

  tool(name: string): ToolModel {
    const model = this.models.get(name) ?? this.modelOf(name);
    this.models.set(name, model);
    return model;
  }

  private modelOf(name: string): ToolModel {
    const tool = this.server.tools?.find((candidate) => candidate.name === name);
    if (!tool) throw new Error(`The simulated server has no tool ${name}`);
    const inferred = this.server.inferred?.[name];
    const inferredObject = inferred?.type === 'object' ? inferred : null;
    const outputSchema = isObject(tool.outputSchema) ? tool.outputSchema : inferredObject;
    return {
      tool,
      inputSchema: JSON.stringify(tool.inputSchema ?? null),
      outputSchema: outputSchema && JSON.stringify(outputSchema),
    };
  }

  /** Returns a value of the output schema, which repeats arguments under equal names; without a schema, the arguments as text. */
  async accepted({ tool: name, arguments: args }: ToolCall): Promise<Answerer> {
    const { outputSchema } = this.tool(name);
    if (outputSchema === null) return toAnswerer(textResult(textOf(name, args)));
    const input = { schema: outputSchema, known: args };
    const sample = await orWhenEnded(tenantThread.run<typeof valueJob>(this.namespaceId, VALUE, input), null);
    if (sample) return toAnswerer(structuredResult(sample.value));
    const reason = 'the simulator cannot create a value of its output schema.';
    return toAnswerer(errorResult(`The simulated tool ${name} has no result: ${reason}`));
  }

  /** @returns null for a valid value, undefined if the schema cannot be used */
  private check(schema: string, value: unknown): Promise<string | null | undefined> {
    return orWhenEnded(tenantThread.run<typeof checkJob>(this.namespaceId, CHECK, { schema, value }), TOO_SLOW);
  }
}

/** @param other replaces the result of a job that was stopped */
function orWhenEnded<T, Other>(work: Promise<T>, other: Other): Promise<T | Other> {
  return work.catch((error: unknown) => {
    if (error instanceof ThreadJobEndedError) return other;
    throw error;
  });
}

function toAnswerer(result: ToolResult): Answerer {
  return () => ({ result });
}

function textOf(tool: string, args: JsonObject): string {
  const entries = Object.entries(args);
  const [only] = entries;
  if (only === undefined) return `${tool}: done.`;
  const isEcho = /echo|say|print/i.test(tool) && /^(message|text|input|value)$/.test(plainName(only[0]));
  if (isEcho && entries.length === 1) return String(only[1]);
  const pairs = entries.map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`);
  return `${tool} (${pairs.join(', ')})`;
}
