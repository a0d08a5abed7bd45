import type { ServerCard } from '../../../mcp/client/server-card.js';
import type { ServerScan } from '../../../mcp/client/server-scan.js';
import type { BundleRuntime } from '../../servers/server.types.js';
import type { BundleFacts } from '../bundle/bundle-manifest.js';

type Item = Record<string, unknown>;

/** Where facts come from: the live server, the published files, or only what its author or its card claims. */
export type FactsSource = 'server' | 'files' | 'claims';

/** What is known of a server, wherever it comes from. Lists are null when nobody said anything about them. */
export interface ServerFacts {
  serverInfo: Item | null;
  instructions?: string;
  tools: Item[] | null;
  resources: Item[] | null;
  resourceTemplates: Item[] | null;
  prompts: Item[] | null;
  /** Bundles only. */
  runtime?: BundleRuntime;
  /** What the files themselves ask to be configured. */
  configSchema?: Item;
}

/** What a live server told. A list it does not declare is one it does not have. */
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

/** What a card claims. */
export function factsOfCard(card: Partial<ServerCard> | null): ServerFacts {
  const { serverInfo = null, tools = null, resources = null, resourceTemplates = null, prompts = null } = card ?? {};
  return { serverInfo, tools, resources, resourceTemplates, prompts };
}

/**
 * What a bundle's manifest says, and where that is silent or incomplete, what its publisher claims: published tools copy
 * the manifest's tools, which often have no schema.
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
