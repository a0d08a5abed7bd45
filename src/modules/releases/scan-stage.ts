import { Injectable } from '@nestjs/common';
import { toStorableJson } from '../../platform/database/storable.js';
import type { HostedFacts, ServerSnapshot } from '../servers/server.types.js';
import { ServerReleasesService } from '../servers/server-releases.service.js';
import { ExternalScan } from './external-scan.js';
import { HostedScan } from './hosted-scan.js';
import { ReleaseFiles } from './release-files.js';
import type { ReleaseLease } from './release-lease.js';
import type { LogLine } from './release-log.js';
import type { Release } from './release.entity.js';
import { factsOfBundle, type FactsSource, type ServerFacts } from './server-facts.js';
import { checkServer } from './security-check.js';
import type { ReleaseStage, StageOutcome } from './stage-outcome.js';

/** What the security check says, wherever it looked. */
interface ScanFinding {
  where: string;
  message: string;
}

/** Finds out what a server offers, and whether it is safe to offer that to models and people. */
@Injectable()
export class ScanStage implements ReleaseStage {
  constructor(
    private readonly servers: ServerReleasesService,
    private readonly external: ExternalScan,
    private readonly files: ReleaseFiles,
    private readonly hosted: HostedScan,
  ) {}

  async run(release: Release, lease: ReleaseLease): Promise<StageOutcome> {
    switch (release.type) {
      case 'external_shttp': {
        const result = await this.external.run(release, lease);
        return 'facts' in result ? this.judge(release, result.facts, result.source) : result.outcome;
      }
      case 'stdio':
        return this.judge(release, factsOfBundle(await this.files.readBundle(release.id), release.serverCard), 'files');
      case 'hosted_shttp': {
        const result = await this.hosted.run(release, lease);
        if ('outcome' in result) return result.outcome;
        const { facts, source, mcpPath } = result;
        const { stateful: isStateful = false, hasAuthAdapter = false } = release.hosting ?? {};
        return this.judge(release, facts, source, { isStateful, hasAuthAdapter, mcpPath });
      }
    }
  }

  /** The security check, and what the later stages need. What a server only claims of itself is never said to have passed. */
  private judge(
    release: Release,
    facts: ServerFacts,
    source: FactsSource,
    hosted: HostedFacts | null = null,
  ): StageOutcome {
    const snapshot = toStorableJson(snapshotOf(release, facts, hosted)) as object;
    const findings = [...checkServer({ ...facts, requireSchemas: source === 'server' }), ...oversize(snapshot)];
    const hasPassed = findings.length === 0;
    const also: StageOutcome['also'] = async (tx) => {
      if (!hasPassed || source !== 'claims') await this.servers.setScan(release.serverId, hasPassed, tx);
    };
    return hasPassed
      ? { change: { snapshot }, lines: [summary(facts, source)], also }
      : { change: { status: 'FAILURE_SCAN' }, lines: report(findings), also };
  }
}

/** A thousand tools with their schemas stay below 2 MB; whoever reads the server reads all of it. */
const SNAPSHOT_MB_MAX = 4;

function oversize(snapshot: object): ScanFinding[] {
  if (Buffer.byteLength(JSON.stringify(snapshot)) <= SNAPSHOT_MB_MAX * 1024 * 1024) return [];
  const message =
    `what it offers takes more than ${SNAPSHOT_MB_MAX} MB as JSON, which every client would load: ` +
    'offer fewer tools, or shorten their descriptions and schemas.';
  return [{ where: 'server', message }];
}

/** The first line is what published tools show as the reason. */
function report(findings: ScanFinding[]): LogLine[] {
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

function summary({ tools, resources, resourceTemplates, prompts }: ServerFacts, source: FactsSource): LogLine {
  const counts = Object.entries({ tools, resources, 'resource templates': resourceTemplates, prompts })
    .map(([name, items]) => `${items === null ? 'unknown' : items.length} ${name}`)
    .join(', ');
  const verdict =
    source === 'claims' ? 'no problem in what it claims, which nobody could compare' : 'the security check passed';
  return { stage: 'scan', level: 'success', message: `Found ${counts}; ${verdict}` };
}

function snapshotOf(release: Release, facts: ServerFacts, hosted: HostedFacts | null): ServerSnapshot {
  const { serverInfo, tools, resources, resourceTemplates, prompts } = facts;
  return {
    releaseId: release.id,
    type: release.type,
    upstreamUrl: release.upstreamUrl,
    runtime: facts.runtime ?? release.runtime,
    hosted,
    configSchema: release.configSchema ?? facts.configSchema ?? {},
    serverInfo,
    tools,
    resources,
    resourceTemplates,
    prompts,
  };
}
