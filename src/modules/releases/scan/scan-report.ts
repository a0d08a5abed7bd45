import { toStorableJson } from '../../../platform/database/storable.js';
import type { HostedFacts, ServerSnapshot } from '../../servers/server.types.js';
import type { LogLine } from '../release-log.entity.js';
import type { Release } from '../release.entity.js';
import type { FactsSource, ServerFacts } from './server-facts.js';
import { checkServer } from './security-check.js';

/** A finding of the security check. */
export interface ScanFinding {
  where: string;
  message: string;
}

/** The findings of the security check; none means passed. */
export function findingsOf(facts: ServerFacts, source: FactsSource, snapshot: ServerSnapshot): ScanFinding[] {
  return [...checkServer({ ...facts, requireSchemas: source === 'server' }), ...oversize(snapshot)];
}

/** A thousand tools with their schemas stay below 2 MB. Every client loads all of it. */
const SNAPSHOT_MB_MAX = 4;

function oversize(snapshot: ServerSnapshot): ScanFinding[] {
  if (Buffer.byteLength(JSON.stringify(snapshot)) <= SNAPSHOT_MB_MAX * 1024 * 1024) return [];
  const message =
    `what it offers takes more than ${SNAPSHOT_MB_MAX} MB as JSON, which every client would load: ` +
    'offer fewer tools, or shorten their descriptions and schemas.';
  return [{ where: 'server', message }];
}

/** Log lines about findings. Published tools show the first one as the reason of a failure. */
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

/** The log line about a passed scan. */
export function summary({ tools, resources, resourceTemplates, prompts }: ServerFacts, source: FactsSource): LogLine {
  const counts = Object.entries({ tools, resources, 'resource templates': resourceTemplates, prompts })
    .map(([name, items]) => `${items === null ? 'unknown' : items.length} ${name}`)
    .join(', ');
  const verdict =
    source === 'claims' ? 'no problem in what it claims, which nobody could compare' : 'the security check passed';
  return { stage: 'scan', level: 'success', message: `Found ${counts}; ${verdict}` };
}

/** The snapshot of a scanned release, in a form that Postgres can store. */
export function snapshotOf(
  release: Release,
  facts: ServerFacts,
  source: FactsSource,
  hosted: HostedFacts | null,
): ServerSnapshot {
  const { serverInfo, tools, resources, resourceTemplates, prompts } = facts;
  return toStorableJson({
    releaseId: release.id,
    type: release.type,
    upstreamUrl: release.upstreamUrl,
    runtime: facts.runtime ?? release.runtime,
    hosted,
    isClaimed: source === 'claims',
    hadCredentials: release.sealedScanCredentials !== null,
    configSchema: release.configSchema ?? facts.configSchema ?? {},
    serverInfo,
    tools,
    resources,
    resourceTemplates,
    prompts,
  } satisfies ServerSnapshot);
}
