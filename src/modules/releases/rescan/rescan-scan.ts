import { Injectable } from '@nestjs/common';
import { UpstreamAuthRequiredError, UpstreamFailure } from '../../../mcp/protocol/mcp-errors.js';
import { Vault } from '../../../platform/vault/vault.js';
import { AuthorizationRequiredError, CredentialUnavailableError } from '../../oauth/credentials.errors.js';
import { BundleScan } from '../scan/bundle-scan.js';
import { ExternalScan, isForbidden } from '../scan/external-scan.js';
import { HostedScan } from '../scan/hosted-scan.js';
import type { ScanContext } from '../scan/leased-scan.js';
import { LeaseLostError, type StageOutcome } from '../release-lease.js';
import { ReleasesRepository } from '../releases.repository.js';
import { redactCredentials, credentialTarget } from '../scan/scan-credentials.js';
import type { FactsSource, ServerFacts } from '../scan/server-facts.js';
import type { ClaimedRescan } from './rescan.repository.js';

/** `refused`: the server requires an authorization that Slipway does not have. */
export type Trouble = 'refused' | 'unreachable' | 'failed-inside';

/** The result of a scan, or a message for the server's owner that says why it failed. */
export type RescanResult =
  { facts: ServerFacts; source: FactsSource; mcpPath?: string } | { trouble: Trouble; message: string };

const REFUSED =
  'The server wants authorization and refuses what Slipway has. Publish it again to authorize Slipway, ' +
  'or ask for another scan with scanCredentials.';

const INSIDE = 'Something failed inside Slipway. If it fails again, the operator finds the reason in the log.';

export const refused = { trouble: 'refused', message: REFUSED } satisfies RescanResult;

export const failedInside: RescanResult = { trouble: 'failed-inside', message: INSIDE };

/** Scans a release again, without changing it and without waiting for an authorization. */
@Injectable()
export class RescanScan {
  constructor(
    private readonly releasesRepository: ReleasesRepository,
    private readonly externalScan: ExternalScan,
    private readonly hostedScan: HostedScan,
    private readonly bundleScan: BundleScan,
    private readonly vault: Vault,
  ) {}

  /** @throws LeaseLostError if the hold is lost, or the release was deleted */
  async run({ releaseId, sealedCredentials }: ClaimedRescan, hold: ScanContext): Promise<RescanResult> {
    const release = await this.releasesRepository.findWith(releaseId, ['serverCard', 'snapshot']);
    if (!release) throw new LeaseLostError();
    const { id, configSchema, upstreamUrl, snapshot } = release;
    if (release.type === 'hosted_shttp') {
      const result = await this.hostedScan.run(release, hold);
      if ('facts' in result && (result.source !== 'claims' || snapshot?.isClaimed)) return result;
      const reason = 'outcome' in result ? errorIn(result.outcome) : null;
      return { trouble: 'unreachable', message: reason ?? 'The module does not answer without values of its callers.' };
    }
    if (release.type === 'stdio') {
      const result = await this.bundleScan.run(release, hold, sealedCredentials);
      if ('outcome' in result) return { trouble: 'unreachable', message: errorIn(result.outcome) ?? INSIDE };
      return result.source === 'server' ? result : { trouble: 'unreachable', message: result.whyNot };
    }
    const credentials = { id, configSchema, sealedScanCredentials: sealedCredentials };
    const target = credentialTarget(new URL(this.externalScan.addressOf(release)), credentials, this.vault);
    try {
      // Without authorization a server might list less, which would look like a change.
      return { facts: await this.externalScan.read(release, target, hold, true), source: 'server' };
    } catch (error) {
      if (error instanceof UpstreamAuthRequiredError || isForbidden(error)) {
        // A card has less than a scan, so it only replaces another card.
        const facts = snapshot?.isClaimed ? await this.externalScan.cardOf(upstreamUrl ?? '') : null;
        return facts ? { facts, source: 'claims' } : refused;
      }
      if (error instanceof AuthorizationRequiredError) return refused;
      if (error instanceof CredentialUnavailableError || error instanceof UpstreamFailure) {
        return { trouble: 'unreachable', message: redactCredentials(error.message, target) };
      }
      throw error;
    }
  }
}

/** Returns the error of a scan outcome; undefined for a pause. */
function errorIn({ lines }: StageOutcome): string | undefined {
  return lines?.find(({ level }) => level === 'error')?.message;
}
