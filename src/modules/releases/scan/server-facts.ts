import type { ServerCard } from '../../../mcp/client/server-card.js';
import type { ServerScan } from '../../../mcp/client/server-scan.js';
import type {
  BundleRuntime,
  HostedFacts,
  ServerOffers,
  ServerSnapshot,
  ServerWarning,
} from '../../servers/server.types.js';
import type { BundleFacts } from '../bundle/bundle-manifest.js';
import { toStorableJson } from '../../../platform/database/storable.js';
import { configOrder } from '../config/config-fields.js';
import type { LogLine, Release } from '../release.entity.js';
import { BROKEN, checkServer, toolWarnings, UNUSABLE, wordWarnings } from './security-check.js';

export interface ScanFinding {
  where: string;
  message: string;
}

/** Maximum size of a snapshot: a thousand tools with schemas have less than 2 MB, and clients load all of them. */
export const SNAPSHOT_MB_MAX = 4;

type Item = Record<string, unknown>;

/** Where facts come from: the live server, the published files, or a card that nobody compared with the server. */
export type FactsSource = 'server' | 'files' | 'claims';

/** Lists are null if unknown. */
export interface ServerFacts extends ServerOffers {
  instructions?: string;
  /** Runtime of a bundle. */
  runtime?: BundleRuntime;
  /** JSON Schema of configuration values in the files. */
  configSchema?: Item;
}

/** Returns the facts of a scan; undeclared lists are empty. */
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

export function factsOfCard(card: Partial<ServerCard> | null): ServerFacts {
  const { serverInfo = null, tools = null, resources = null, resourceTemplates = null, prompts = null } = card ?? {};
  return { serverInfo, tools, resources, resourceTemplates, prompts };
}

/** Returns the facts of a bundle, completed from the published card: the manifest's tools often have no schema. */
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

/** Returns warnings about instructions to a model, and about tools that clients reject or cannot check. */
export async function warningsOf(facts: ServerFacts, source: FactsSource): Promise<ServerWarning[]> {
  return [...(await wordWarnings(facts)), ...(await toolWarnings({ ...facts, requireSchemas: source === 'server' }))];
}

/**
 * Returns findings; a server passes the check without any. Broken tools are findings only if a release has no usable tool;
 * otherwise, and at a rescan, they are warnings.
 */
export async function findingsOf(
  facts: ServerFacts,
  source: FactsSource,
  snapshot: ServerSnapshot,
  isRescan = false,
): Promise<ScanFinding[]> {
  const input = { ...facts, requireSchemas: source === 'server' };
  const isUsable = isRescan || (await toolWarnings(input, UNUSABLE)).length < (facts.tools?.length ?? 0);
  const findings = await checkServer(input, isUsable ? BROKEN : ['refused-by-some']);
  return [...findings, ...oversize(snapshot)];
}

function oversize(snapshot: ServerSnapshot): ScanFinding[] {
  if (Buffer.byteLength(JSON.stringify(snapshot)) <= SNAPSHOT_MB_MAX * 1024 * 1024) return [];
  const message =
    `its tools, resources and prompts take more than ${SNAPSHOT_MB_MAX} MB as JSON, which every client would load: ` +
    'offer fewer tools, or shorten their descriptions and schemas.';
  return [{ where: 'server', message }];
}

/** Formats findings. Published clients show the first line as the reason of a failure. */
export function report(findings: ScanFinding[]): LogLine[] {
  const [first] = findings;
  const more = findings.length === 1 ? '' : ` ${findings.length - 1} more below.`;
  const message = `The security check found ${findings.length === 1 ? 'a problem' : `${findings.length} problems`}: ${first.where}: ${first.message}${more}`;
  return [
    { stage: 'scan', level: 'error', message },
    ...findings.slice(1).map(({ where, message: text }): LogLine => {
      return { stage: 'scan', level: 'warning', message: `${where}: ${text}` };
    }),
  ];
}

export function warningLine({ message }: ServerWarning): LogLine {
  return { stage: 'scan', level: 'warning', message };
}

export function summary({ tools, resources, resourceTemplates, prompts }: ServerFacts, source: FactsSource): LogLine {
  const counts = Object.entries({
    tool: tools,
    resource: resources,
    'resource template': resourceTemplates,
    prompt: prompts,
  })
    .map(([name, items]) => `${items?.length ?? 'unknown'} ${name}${items?.length === 1 ? '' : 's'}`)
    .join(', ');
  const verdict =
    source === 'files'
      ? 'it was not run: only its manifest was checked'
      : source === 'claims'
        ? 'no problem in its claims, which could not be compared with the server'
        : 'the security check passed';
  return { stage: 'scan', level: 'success', message: `Found ${counts}; ${verdict}` };
}

/** Returns the snapshot of a scanned release, in a form that Postgres can store. */
export async function snapshotOf(
  release: Release,
  facts: ServerFacts,
  source: FactsSource,
  hosted: HostedFacts | null,
): Promise<ServerSnapshot> {
  const { serverInfo, tools, resources, resourceTemplates, prompts } = facts;
  const configSchema = release.configSchema ?? facts.configSchema ?? {};
  return toStorableJson({
    releaseId: release.id,
    type: release.type,
    upstreamUrl: release.upstreamUrl,
    runtime: facts.runtime ?? release.runtime,
    hosted,
    isClaimed: source === 'claims',
    hadCredentials: release.sealedScanCredentials !== null,
    configSchema,
    configOrder: configOrder(configSchema),
    serverInfo,
    tools,
    resources,
    resourceTemplates,
    prompts,
    warnings: await warningsOf(facts, source),
  } satisfies ServerSnapshot);
}
