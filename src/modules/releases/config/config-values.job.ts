import '../../../platform/json-schema/schemas-in-thread.js';
import { schemaValidator, type SchemaFault } from '../../../platform/json-schema/schema-check.js';

interface ConfigText {
  path: string[];
  type: string;
  text: string;
}

/**
 * @param schema as JSON
 * @returns null if the validation takes too long; no problems if a stored schema cannot be compiled
 */
export function job({ schema, values }: { schema: string; values: ConfigText[] }): SchemaFault[] | null {
  const validate = schemaValidator(JSON.parse(schema));
  if (typeof validate === 'string') return [];
  const instance: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
  for (const { path, type, text } of values) {
    let inner = instance;
    for (const name of path.slice(0, -1)) {
      inner = (inner[name] ??= Object.create(null)) as Record<string, unknown>;
    }
    inner[path[path.length - 1] ?? ''] = type === 'string' ? text : JSON.parse(text);
  }
  return validate(instance);
}
