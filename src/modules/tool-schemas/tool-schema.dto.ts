import { ApiProperty } from '@nestjs/swagger';
import { driftKinds, type DriftKind } from './schema-drift.js';

/** One place of a tool's answers. */
export class OutputFieldDto {
  /**
   * JSONPath (RFC 9535). `[*]` stands for every element, `.*` for every member whose name is data.
   * @example '$.items[*].name'
   */
  path: string;
  /**
   * In which share of the objects around it the member was. 1 for elements.
   * @example 0.75
   */
  @ApiProperty({ minimum: 0, maximum: 1 })
  presence: number;
  /**
   * Types of JSON Schema; empty when nothing is known.
   * @example ['string', 'null']
   */
  types: string[];
  /** @example 'date-time' */
  format?: string;
}

/** Where answers depart from the output schema the tool declares. */
export class OutputDriftDto {
  /** @example '$.items[*].id' */
  path: string;
  /**
   * `unstructured`: no `structuredContent`. `type`: a value of another type. `missing`: a required member is not always
   * there. `forbidden`: a member that must not be there. `undeclared`: one that is not mentioned.
   */
  @ApiProperty({ enum: driftKinds, example: 'type' })
  kind: DriftKind;
  /** @example 'It is declared as string, and was integer.' */
  message: string;
}

/** What recent successful answers of a tool looked like. Holds no values but words of closed lists. Spec 2.6. */
export class ToolOutputSchemaDto {
  /** @example 'acme/weather' */
  qualifiedName: string;
  /** @example 'forecast' */
  toolName: string;
  /** Answers it was made of: sampled ones of the last four to five weeks. */
  @ApiProperty({ type: 'integer' })
  sampleCount: number;
  /** A Zod expression that accepts all of them. Every field is optional. */
  validatorSchema: string;
  /** The same, under the name that published clients read. */
  zodSchema: string;
  /** The same as JSON Schema 2020-12. */
  @ApiProperty({ type: 'object', additionalProperties: true })
  jsonSchema: Record<string, unknown>;
  fields: OutputFieldDto[];
  /** Where they depart from the output schema the tool declares; empty when they do not. Absent without such a schema. */
  @ApiProperty({ type: [OutputDriftDto], required: false })
  drift?: OutputDriftDto[];
}

const zodExample = 'z.object({ "items": z.array(z.object({ "id": z.number().int().optional() })).optional() })';

/** How an answer looks. */
export const toolOutputSchemaExample: ToolOutputSchemaDto = {
  qualifiedName: 'acme/weather',
  toolName: 'forecast',
  sampleCount: 48,
  validatorSchema: zodExample,
  zodSchema: zodExample,
  jsonSchema: {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: {
      items: { type: 'array', items: { type: 'object', properties: { id: { type: 'integer' } } } },
    },
  },
  fields: [
    { path: '$', presence: 1, types: ['object'] },
    { path: '$.items', presence: 1, types: ['array'] },
    { path: '$.items[*]', presence: 1, types: ['object'] },
    { path: '$.items[*].id', presence: 0.75, types: ['integer'] },
  ],
  drift: [{ path: '$.items[*].id', kind: 'type', message: 'It is declared as string, and was integer.' }],
};
