import { hostname } from 'node:os';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
  type Resource,
} from '@opentelemetry/resources';
import { VERSION } from '../../config/version.js';

/** What sends traces and logs. `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` take precedence. */
export function resourceOf(roles: readonly string[]): Resource {
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
