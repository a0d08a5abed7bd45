import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { UpstreamAuthRequiredError, UpstreamFailure } from '../../../mcp/protocol/mcp-errors.js';
import { Vault } from '../../../platform/vault/vault.js';
import { AuthorizationRequiredError, CredentialUnavailableError } from '../../oauth/credentials.errors.js';
import { ExternalScan, isForbidden } from '../scan/external-scan.js';
import { HostedScan } from '../scan/hosted-scan.js';
import type { ScanHold } from '../scan/leased-scan.js';
import { LeaseLostError } from '../release-lease.js';
import { Release } from '../release.entity.js';
import { redactCredentials, credentialTarget } from '../scan/scan-credentials.js';
import type { FactsSource, ServerFacts } from '../scan/server-facts.js';
import type { ClaimedRescan } from './rescan-claims.js';

/** Why a scan found nothing out. `refused`: the server wants authorization, and what we have is not enough. */
export type Trouble = 'refused' | 'unreachable' | 'failed-inside';

/** What a scan found, or why it found nothing out, in a sentence for the server's owner. */
export type Rescanned =
  { facts: ServerFacts; source: FactsSource; mcpPath?: string } | { trouble: Trouble; message: string };

const REFUSED =
  'The server wants authorization and refuses what Slipway has. Publish it again to authorize Slipway anew, ' +
  'or ask for another scan with scanCredentials.';

const INSIDE = 'Something failed inside Slipway. If it stays so, the operator finds it in the log.';

/** What is told of a scan that the server's authorization kept out. */
export const refused = { trouble: 'refused', message: REFUSED } satisfies Rescanned;

/** What is told of a scan that failed by a fault of ours. */
export const failedInside: Rescanned = { trouble: 'failed-inside', message: INSIDE };

/** Scans a release that is published already. It asks nobody to authorize, and changes nothing. */
@Injectable()
export class RescanScan {
  constructor(
    @InjectRepository(Release) private readonly releases: Repository<Release>,
    private readonly external: ExternalScan,
    private readonly hosted: HostedScan,
    private readonly vault: Vault,
  ) {}

  /** @throws LeaseLostError when the hold ends, or the release is gone */
  async run({ releaseId, sealedCredentials }: ClaimedRescan, hold: ScanHold): Promise<Rescanned> {
    const release = await this.releases
      .createQueryBuilder('release')
      .addSelect(['release.serverCard', 'release.snapshot'])
      .where({ id: releaseId })
      .getOne();
    if (!release) throw new LeaseLostError();
    return release.type === 'hosted_shttp'
      ? this.runHosted(release, hold)
      : this.runExternal(release, sealedCredentials, hold);
  }

  private async runExternal(release: Release, sealed: string | null, hold: ScanHold): Promise<Rescanned> {
    const { id, configSchema, upstreamUrl, snapshot } = release;
    const given = { id, configSchema, sealedScanCredentials: sealed };
    const target = credentialTarget(new URL(upstreamUrl ?? ''), given, this.vault);
    try {
      // Without its authorization a server may show less than it has, which would pass for a change.
      return { facts: await this.external.look(release, target, hold, true), source: 'server' };
    } catch (error) {
      if (error instanceof UpstreamAuthRequiredError || isForbidden(error)) {
        // A card says less than a scan, so it only replaces another card.
        const facts = snapshot?.isClaimed ? await this.external.cardOf(upstreamUrl ?? '') : null;
        return facts ? { facts, source: 'claims' } : refused;
      }
      if (error instanceof AuthorizationRequiredError) return refused;
      if (error instanceof CredentialUnavailableError || error instanceof UpstreamFailure) {
        return { trouble: 'unreachable', message: redactCredentials(error.message, target) };
      }
      throw error;
    }
  }

  private async runHosted(release: Release, hold: ScanHold): Promise<Rescanned> {
    const result = await this.hosted.run(release, hold);
    if ('facts' in result && (result.source !== 'claims' || release.snapshot?.isClaimed)) return result;
    const reason = 'outcome' in result ? result.outcome.lines?.find(({ level }) => level === 'error')?.message : null;
    return { trouble: 'unreachable', message: reason ?? 'The module does not answer without values of its callers.' };
  }
}
