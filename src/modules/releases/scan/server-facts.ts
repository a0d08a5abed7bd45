import type { ServerCard } from '../../../mcp/client/server-card.js';
import type { ServerScan } from '../../../mcp/client/server-scan.js';
import type { BundleRuntime } from '../../servers/server.types.js';
import type { BundleFacts } from '../bundle/bundle-manifest.js';

type Item = Record<string, unknown>;

/** The source of facts: the live server, the published files, or a card that nobody compared with the server. */
export type FactsSource = 'server' | 'files' | 'claims';

/** Facts about a server from any source. Lists are null if unknown. */
export interface ServerFacts {
  serverInfo: Item | null;
  instructions?: string;
  tools: Item[] | null;
  resources: Item[] | null;
  resourceTemplates: Item[] | null;
  prompts: Item[] | null;
  /** Bundles only. */
  runtime?: BundleRuntime;
  /** JSON Schema of configuration values in the files. */
  configSchema?: Item;
}

/** The facts of a live server. Undeclared lists are empty. */
export function factsOfScan(scan: ServerScan): ServerFacts {
  const { serverInfo, instructions } = scan;
  return {
    serverInfo: { ...serverInfo },
    ...(instructions === undefined ? {} : { instructions }),
    tools: scan.tools ?? [],
    resources: scan.resources ?? [],
    resourceTemplates: scan.resourceTemplates ?? [],
    prompts: scan.prompts ?? [],
  };
}

/** The facts on a card. */
export function factsOfCard(card: Partial<ServerCard> | null): ServerFacts {
  const { serverInfo = null, tools = null, resources = null, resourceTemplates = null, prompts = null } = card ?? {};
  return { serverInfo, tools, resources, resourceTemplates, prompts };
}

/**
 * The facts of a bundle's manifest, completed from the published card: the manifest's tools often have no schema.
 */
export function factsOfBundle(bundle: BundleFacts, card: Partial<ServerCard> | null): ServerFacts {
  const claimed = factsOfCard(card);
  const { serverInfo, tools, isComplete, prompts, runtime, configSchema } = bundle;
  return {
    ...claimed,
    serverInfo,
    tools: isComplete ? tools : (claimed.tools ?? tools),
    prompts: prompts ?? claimed.prompts,
    runtime,
    configSchema,
  };
}
