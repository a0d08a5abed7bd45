import { hostname } from 'node:os';
import type { Resource } from '@opentelemetry/resources';
import { VERSION } from '../../config/version.js';

/**
 * Returns the resource that sends traces and logs. `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` take precedence. Loads
 * the library, which a process without a collector does not need.
 */
export async function resourceOf(roles: readonly string[]): Promise<Resource> {
  const { defaultResource, detectResources, envDetector, resourceFromAttributes } =
    await import('@opentelemetry/resources');
  const service = resourceFromAttributes({
    'service.name': 'slipway',
    'service.version': VERSION,
    'service.instance.id': `${hostname()}-${process.pid}`,
    'slipway.roles': roles.join(),
  });
  return defaultResource()
    .merge(service)
    .merge(detectResources({ detectors: [envDetector] }));
}
