import type { ServerRef } from '../servers/server.types.js';
import type { Drift } from './schema-drift.js';
import { fieldsOf } from './shape-fields.js';
import { toJsonSchema } from './shape-schema.js';
import type { ToolOutputSchemaDto } from './tool-schema.dto.js';
import type { Observed } from './tool-shape.repository.js';
import { toZodText } from './zod-text.js';

/** @param drift null without a declared schema */
export function toToolOutputSchemaDto(
  { namespace, name }: ServerRef,
  toolName: string,
  { samples, shape }: Observed,
  drift: Drift[] | null,
): ToolOutputSchemaDto {
  const zodSchema = toZodText(shape);
  return {
    qualifiedName: name === '' ? namespace : `${namespace}/${name}`,
    toolName,
    sampleCount: samples,
    validatorSchema: zodSchema,
    zodSchema,
    jsonSchema: toJsonSchema(shape),
    fields: fieldsOf(shape),
    ...(drift && { drift }),
  };
}
