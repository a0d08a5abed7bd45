/** A JSON object whose members are not known. */
export type JsonObject = Record<string, unknown>;

/** True for a JSON object: no list, and not null. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
