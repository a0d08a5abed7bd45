import { Injectable } from '@nestjs/common';
import { toStorableJson } from '../../platform/database/storable.js';
import type { ServerSnapshot } from '../servers/server.types.js';
import { ServerReleasesService } from '../servers/server-releases.service.js';
import { ExternalScan } from './external-scan.js';
import { ReleaseFiles } from './release-files.js';
import type { ReleaseLease } from './release-lease.js';
import type { LogLine } from './release-log.js';
import type { Release } from './release.entity.js';
import type { ServerFacts } from './server-facts.js';
import { factsOfBundle, factsOfCard } from './server-facts.js';
import { checkServer, type Finding } from './security-check.js';
import { failed, type ReleaseStage, type StageOutcome } from './stage-outcome.js';

/** Finds out what a server offers, and whether it is safe to offer that to models and people. */
@Injectable()
export class ScanStage implements ReleaseStage {
  constructor(
    private readonly servers: ServerReleasesService,
    private readonly external: ExternalScan,
    private readonly files: ReleaseFiles,
  ) {}

  async run(release: Release, lease: ReleaseLease): Promise<StageOutcome> {
    switch (release.type) {
      case 'external_shttp': {
        const result = await this.external.run(release, lease);
        return 'facts' in result ? this.judge(release, result.facts, result.isLive) : result.outcome;
      }
      case 'stdio':
        return this.judge(release, factsOfBundle(await this.files.readBundle(release.id), release.serverCard));
      case 'hosted_shttp': {
        const outcome = this.judge(release, factsOfCard(release.serverCard));
        if (outcome.change?.status !== undefined) return outcome;
        return { ...outcome, ...failed('FAILURE', 'scan', NOT_HOSTED) };
      }
    }
  }

  /** The security check, and what the later stages need. */
  private judge(release: Release, facts: ServerFacts, isLive = false): StageOutcome {
    const findings = checkServer({ ...facts, requireSchemas: isLive });
    const also: StageOutcome['also'] = (tx) => this.servers.setScan(release.serverId, findings.length === 0, tx);
    if (findings.length > 0) {
      return { change: { status: 'FAILURE_SCAN' }, lines: report(findings), also };
    }
    return {
      change: { snapshot: toStorableJson(snapshotOf(release, facts)) as object },
      lines: [summary(facts)],
      also,
    };
  }
}

const NOT_HOSTED =
  'Hosting is not enabled on this service, so the module cannot run. Its syntax and exports are fine, and it is stored. ' +
  'Run it elsewhere and publish its URL, or publish again when hosting is enabled.';

/** The first line is what published tools show as the reason. */
function report(findings: Finding[]): LogLine[] {
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

function summary({ tools, resources, resourceTemplates, prompts }: ServerFacts): LogLine {
  const counts = Object.entries({ tools, resources, 'resource templates': resourceTemplates, prompts })
    .map(([name, items]) => `${items === null ? 'unknown' : items.length} ${name}`)
    .join(', ');
  return { stage: 'scan', level: 'success', message: `Found ${counts}; the security check passed` };
}

function snapshotOf(release: Release, facts: ServerFacts): ServerSnapshot {
  const { serverInfo, tools, resources, resourceTemplates, prompts } = facts;
  return {
    releaseId: release.id,
    type: release.type,
    upstreamUrl: release.upstreamUrl,
    runtime: facts.runtime ?? release.runtime,
    configSchema: release.configSchema ?? facts.configSchema ?? {},
    serverInfo,
    tools,
    resources,
    resourceTemplates,
    prompts,
  };
}
