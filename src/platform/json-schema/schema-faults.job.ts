import './schemas-in-thread.js';
import { schemaValidator, type SchemaFault } from './schema-check.js';

/**
 * @param schema as JSON text
 * @returns none for a schema that cannot be used, or whose check takes too long
 */
export function job({ schema, value }: { schema: string; value: unknown }): SchemaFault[] {
  const validate = schemaValidator(JSON.parse(schema));
  return (typeof validate !== 'string' && validate(value)) || [];
}
