import type { JsonObject } from '../../../../platform/text/json.js';
import type { SchemaSimulator, ToolModel } from './schema-simulator.js';
import { fallback, markResult, simulatorMark } from './simulator.js';
import type { Answerer, SimulatedCall, Simulator, ToolResult } from './simulator.js';

/** A call of a mock's tool, with allowed arguments. */
export interface ModelledCall extends SimulatedCall {
  namespaceId: string;
  scenario: string | null;
  definition: ToolModel;
  /** @returns null for a valid result */
  outputFault: (result: JsonObject) => Promise<string | null>;
  /** Counts a request to the model. Returns false if a quota of the day is used up. */
  countRequest: (quota: { total: number; namespace: number }) => Promise<boolean>;
}

/** The model has no result. Callers see the message, so it must not name hosts or keys. */
export class MockModelError extends Error {}

/** The language model of mocks. */
export interface MockModelProvider {
  /** @throws MockModelError, whose message is the reason why the result is made from the schemas */
  resultOf(call: ModelledCall): Promise<ToolResult>;
}

type MockContext = Pick<ModelledCall, 'namespaceId' | 'scenario' | 'countRequest'>;

/**
 * Uses the results of a language model if they arrive in time and satisfy the schema; otherwise it generates them from the
 * schemas. Each result is marked with its source.
 */
export class ModelSimulator implements Simulator {
  constructor(
    private readonly schema: SchemaSimulator,
    private readonly provider: MockModelProvider,
    private readonly context: MockContext,
  ) {}

  async prepare(call: SimulatedCall): Promise<Answerer> {
    const { schema, context, provider } = this;
    const refusal = await schema.refusal(call);
    if (refusal) return refusal;
    const definition = schema.tool(call.tool);
    const outputFault = (result: JsonObject) => schema.outputFault(definition, result);
    try {
      const resultOfModel = await provider.resultOf({ ...call, ...context, definition, outputFault });
      const result = markResult(resultOfModel, { [simulatorMark.by]: 'model' });
      return () => ({ result });
    } catch (error) {
      if (!(error instanceof MockModelError)) throw error;
      return fallback(await schema.accepted(call), error.message);
    }
  }
}
