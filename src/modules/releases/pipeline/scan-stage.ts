import { Injectable } from '@nestjs/common';
import type { HostedFacts } from '../../servers/server.types.js';
import { ServerReleasesService } from '../../servers/server-releases.service.js';
import { BundleScan } from '../scan/bundle-scan.js';
import { ExternalScan } from '../scan/external-scan.js';
import { HostedScan } from '../scan/hosted-scan.js';
import type { ReleaseLease, ReleaseStage, StageOutcome } from '../release-lease.js';
import type { Release } from '../release.entity.js';
import { FINDINGS_MAX } from '../scan/security-check.js';
import {
  findingsOf,
  report,
  snapshotOf,
  summary,
  warningLine,
  type FactsSource,
  type ServerFacts,
} from '../scan/server-facts.js';

@Injectable()
export class ScanStage implements ReleaseStage {
  constructor(
    private readonly serverReleasesService: ServerReleasesService,
    private readonly externalScan: ExternalScan,
    private readonly bundleScan: BundleScan,
    private readonly hostedScan: HostedScan,
  ) {}

  async run(release: Release, lease: ReleaseLease): Promise<StageOutcome> {
    switch (release.type) {
      case 'external_shttp': {
        const result = await this.externalScan.run(release, lease);
        return 'facts' in result ? this.evaluate(release, result.facts, result.source) : result.outcome;
      }
      case 'stdio': {
        const result = await this.bundleScan.run(release, lease, release.sealedScanCredentials);
        return 'facts' in result ? this.evaluate(release, result.facts, result.source) : result.outcome;
      }
      case 'hosted_shttp': {
        const result = await this.hostedScan.run(release, lease);
        if ('outcome' in result) return result.outcome;
        const { facts, source, mcpPath } = result;
        const { stateful: isStateful = false, hasAuthAdapter = false } = release.hosting ?? {};
        return this.evaluate(release, facts, source, { isStateful, hasAuthAdapter, mcpPath });
      }
    }
  }

  /** Claims that were not compared with the server never pass the security check. */
  private async evaluate(
    release: Release,
    facts: ServerFacts,
    source: FactsSource,
    hosted: HostedFacts | null = null,
  ): Promise<StageOutcome> {
    const snapshot = await snapshotOf(release, facts, source, hosted);
    const { warnings = [] } = snapshot;
    const findings = await findingsOf(facts, source, snapshot);
    const hasPassed = findings.length === 0;
    const inTransaction: StageOutcome['inTransaction'] = async (tx) => {
      // A valid manifest proves nothing about the code of a bundle.
      const scanPassed = hasPassed && source === 'files' ? null : hasPassed;
      if (!hasPassed || source !== 'claims') await this.serverReleasesService.setScan(release.serverId, scanPassed, tx);
    };
    const lines = [summary(facts, source), ...warnings.slice(0, FINDINGS_MAX).map(warningLine)];
    return hasPassed
      ? { change: { snapshot: snapshot as object }, lines, inTransaction }
      : { change: { status: 'FAILURE_SCAN' }, lines: report(findings), inTransaction };
  }
}
