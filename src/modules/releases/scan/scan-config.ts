import type { ConfigField } from '../config/config-fields.js';
import type { CompiledConfig } from '../config/config-map.js';

/** Values for a look at a server that wants some of its callers. */
export interface ScanConfig {
  query: [name: string, value: string][];
  /** The required values nobody gave, which were made up. */
  invented: string[];
}

/** The defaults of a schema, its examples where there is no default, and for the rest of what is required anything that fits. */
export function scanConfig({ fields }: CompiledConfig): ScanConfig {
  const config: ScanConfig = { query: [], invented: [] };
  for (const field of fields) {
    const name = field.path.join('.');
    const given = field.fallback ?? exampleOf(field);
    if (given !== undefined) config.query.push([name, given]);
    else if (field.isRequired) {
      config.query.push([name, madeUp(field)]);
      config.invented.push(name);
    }
  }
  return config;
}

function exampleOf({ schema: { examples, example } }: ConfigField): string | undefined {
  const [first = example] = Array.isArray(examples) ? (examples as unknown[]) : [];
  if (first === undefined) return undefined;
  return typeof first === 'string' ? first : JSON.stringify(first);
}

function madeUp({ type, allowed, schema }: ConfigField): string {
  const [first] = allowed ?? [];
  if (first !== undefined) return first;
  switch (type) {
    case 'boolean':
      return 'false';
    case 'number':
    case 'integer':
      return String(typeof schema.minimum === 'number' ? Math.ceil(schema.minimum) : 1);
    case 'json':
      return schema.type === 'array' ? '[]' : '{}';
    case 'string':
      return schema.format === 'uri' || schema.format === 'url' ? 'https://example.com/' : 'example';
  }
}
