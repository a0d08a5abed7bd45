import '../../../platform/json-schema/schemas-in-thread.js';
import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import type { ConfigKind } from './config-fields.js';
import { requireConfigSchema } from './config-schema.js';

/** Runs {@link requireConfigSchema} in the thread for tenants' work; returns the reason of a rejection as a string. */
export function job({
  value,
  kind,
}: {
  value: unknown;
  kind: ConfigKind;
}): ReturnType<typeof requireConfigSchema> | { refusal: string } {
  try {
    return requireConfigSchema(value, kind);
  } catch (error) {
    if (error instanceof InvalidInputError) return { refusal: error.message };
    throw error;
  }
}
