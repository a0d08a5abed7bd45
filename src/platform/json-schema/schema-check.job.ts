import './schemas-in-thread.js';
import type { JsonObject } from '../text/json.js';
import { schemaCheck } from './schema-check.js';

/**
 * @param schema as JSON text
 * @returns undefined when the schema cannot be used
 */
export function job({ schema, value }: { schema: string; value: unknown }): string | null | undefined {
  return schemaCheck(JSON.parse(schema) as JsonObject)?.(value);
}
