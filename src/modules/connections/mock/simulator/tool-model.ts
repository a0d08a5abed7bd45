import { schemaCheck, type SchemaCheck } from '../../../../platform/json-schema/schema-check.js';
import { isObject, type JsonObject } from '../../../../platform/text/json.js';

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
