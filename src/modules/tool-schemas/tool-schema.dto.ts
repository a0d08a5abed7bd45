import { ApiProperty } from '#api-docs';

/** One position in a tool's results. */
export class OutputFieldDto {
  /**
   * JSONPath (RFC 9535). `[*]` stands for every element, `.*` for every member whose name is data.
   * @example '$.items[*].name'
   */
  path: string;
  /**
   * Share of the enclosing objects that have the member. 1 for elements.
   * @example 0.75
   */
  @ApiProperty({ minimum: 0, maximum: 1 })
  presence: number;
  /**
   * Types of JSON Schema; empty when unknown.
   * @example ['string', 'null']
   */
  types: string[];
  /** @example 'date-time' */
  format?: string;
}

/** The output schema inferred from recent successful results of a tool. Holds no values but those of enums. Spec 2.6. */
export class ToolOutputSchemaDto {
  /** @example 'acme/weather' */
  qualifiedName: string;
  /** @example 'forecast' */
  toolName: string;
  /** Number of results it was inferred from: samples of the last four to five weeks. */
  @ApiProperty({ type: 'integer', example: 48 })
  sampleCount: number;
  /**
   * A Zod expression that accepts all sampled results. Every field is optional.
   * @example 'z.object({ "items": z.array(z.object({ "id": z.number().int().optional() })).optional() })'
   */
  validatorSchema: string;
  /**
   * The value of `validatorSchema`, under the name that published clients read.
   * @example 'z.object({ "items": z.array(z.object({ "id": z.number().int().optional() })).optional() })'
   */
  zodSchema: string;
  /**
   * The schema as JSON Schema 2020-12.
   * @example { "type": "object", "properties": { "items": { "type": "array", "items": { "type": "object" } } } }
   */
  @ApiProperty({ type: 'object', additionalProperties: true })
  jsonSchema: Record<string, unknown>;
  fields: OutputFieldDto[];
}
