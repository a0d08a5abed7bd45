import '../../../../platform/json-schema/schemas-in-thread.js';
import { schemaCheck } from '../../../../platform/json-schema/schema-check.js';
import type { JsonObject } from '../../../../platform/text/json.js';
import { satisfyingValue, UnsatisfiableError } from './schema-value.js';

/**
 * @param schema as JSON
 * @returns null if no value is found
 */
export function job({ schema: text, known }: { schema: string; known: unknown }): { value: unknown } | null {
  const schema = JSON.parse(text) as JsonObject;
  try {
    return { value: satisfyingValue(schema, schemaCheck(schema), known) };
  } catch (error) {
    if (error instanceof UnsatisfiableError) return null;
    throw error;
  }
}
