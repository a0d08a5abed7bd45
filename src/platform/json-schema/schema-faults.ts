import { tenantThread, ThreadJobEndedError } from '../threads/fair-thread.js';
import type { SchemaFault } from './schema-check.js';
import type { job as faultsJob } from './schema-faults.job.js';

const FAULTS = 'platform/json-schema/schema-faults.job.js';

/**
 * Returns the errors of a value, found in the thread for tenants' work: none for a schema that cannot be used, or whose
 * check takes too long.
 *
 * @param namespaceId whose turn it is
 */
export async function schemaFaults(namespaceId: string, schema: unknown, value: unknown): Promise<SchemaFault[]> {
  try {
    return await tenantThread.run<typeof faultsJob>(namespaceId, FAULTS, { schema: JSON.stringify(schema), value });
  } catch (error) {
    if (error instanceof ThreadJobEndedError) return [];
    throw error;
  }
}
