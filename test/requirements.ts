import { access } from './requirements/access.js';
import { connectionInsight } from './requirements/connection-insight.js';
import { credentials } from './requirements/credentials.js';
import { connectionSetup } from './requirements/connection-setup.js';
import { connectEndpoints } from './requirements/endpoints-connect.js';
import { registryEndpoints } from './requirements/endpoints-registry.js';
import { hostingHosts } from './requirements/hosting-hosts.js';
import { logIngestion } from './requirements/log-ingestion.js';
import { hostedEgress } from './requirements/hosted-egress.js';
import { hostedBundles } from './requirements/hosted-bundles.js';
import { hostingRuntime } from './requirements/hosting-runtime.js';
import { connectResources } from './requirements/resources-connect.js';
import { registryResources } from './requirements/resources-registry.js';
import { runtimeLogs } from './requirements/runtime-logs.js';
import { servers } from './requirements/servers.js';
import { service } from './requirements/service.js';
import { states } from './requirements/states.js';
import { uplinks } from './requirements/uplinks.js';

/**
 * Who says so: `Spec 4.2` is a section of the interface specification, `Field` the behaviour of published clients and
 * `House` our own promise. `Spec 4.2, Field` means that the section leaves the point open and the second one settles it.
 */
export type RequirementSource = `Spec ${string}` | 'Field' | 'House';

/** The part of the service that brings a requirement which nothing can prove yet. */
export type PendingTopic = 'hosting';

/** One rule of the service, small enough that one test can prove it. */
export interface Requirement {
  readonly source: RequirementSource;
  /** One sentence in the present tense that a test can prove. */
  readonly behavior: string;
  /** Set while the feature is missing. `requirements.spec.ts` fails when it is still set and a test exists. */
  readonly pending?: PendingTopic;
}

/** The requirements by file, so that `requirements.spec.ts` can find an id that two files use. */
export const requirementChapters = [
  registryResources,
  connectResources,
  states,
  registryEndpoints,
  connectEndpoints,
  connectionInsight,
  access,
  credentials,
  connectionSetup,
  logIngestion,
  runtimeLogs,
  servers,
  service,
  uplinks,
  hostingHosts,
  hostedEgress,
  hostedBundles,
  hostingRuntime,
] as const;

/**
 * Every rule of the interface specification and every promise beyond it. Tests cite the ids with `verifies`, and
 * `requirements.spec.ts` fails on each id that has no test and is not pending.
 */
export const requirements = {
  ...registryResources,
  ...connectResources,
  ...states,
  ...registryEndpoints,
  ...connectEndpoints,
  ...connectionInsight,
  ...access,
  ...credentials,
  ...connectionSetup,
  ...logIngestion,
  ...runtimeLogs,
  ...servers,
  ...service,
  ...uplinks,
  ...hostingHosts,
  ...hostedEgress,
  ...hostedBundles,
  ...hostingRuntime,
} as const satisfies Record<string, Requirement>;

/** The id of a requirement. A test that cites any other does not compile. */
export type RequirementId = keyof typeof requirements;
