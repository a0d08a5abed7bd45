/**
 * Scans a server that runs elsewhere: opens a channel with the publisher's `scanCredentials` or with the token that its
 * owner authorized, and reads all lists without calling a tool.
 *
 * If a server requires authorization and publishes a card (`/.well-known/mcp/server-card.json`), the card is used.
 * Without a card the release pauses as AUTH_REQUIRED, and its owner receives a link. If the server responds at another
 * path, `/mcp` is tried once, for a hint to the publisher.
 *
 * Failures finish the release with FAILURE and a message for the publisher, without the credentials that were sent.
 */
import { Injectable } from '@nestjs/common';
import { Env } from '../../../config/env.js';
import { Tuning } from '../../../config/tuning.js';
import { HttpChannels } from '../../../mcp/client/http/http-channel.js';
import { UpstreamAuthRequiredError, UpstreamError, UpstreamFailure } from '../../../mcp/protocol/mcp-errors.js';
import { fetchServerCard } from '../../../mcp/client/server-card.js';
import { Egress } from '../../../platform/egress/egress.js';
import { Vault } from '../../../platform/vault/vault.js';
import {
  AuthorizationRequiredError,
  CredentialUnavailableError,
  OAuthSetupError,
} from '../../oauth/credentials.errors.js';
import { AuthorizationsService } from '../../oauth/authorizations.service.js';
import { CredentialsService } from '../../oauth/credentials.service.js';
import type { CredentialOwner } from '../../oauth/credentials.types.js';
import { ServerReleasesService } from '../../servers/server-releases.service.js';
import type { Release } from '../release.entity.js';
import { failed, type StageOutcome } from '../release-lease.js';
import { RELEASE_SETUP_PAGE } from '../releases.types.js';
import { formatQualifiedName } from '../../servers/server.types.js';
import { scanUnderLease, type ScanContext } from './leased-scan.js';
import { redactCredentials, credentialTarget, type ScanTarget } from './scan-credentials.js';
import { factsOfCard, factsOfScan, type FactsSource, type ServerFacts } from './server-facts.js';

/** Timeout of a card, a small file; a slow server is treated as one without a card. */
const CARD_TIMEOUT_MS = 5_000;

/** Facts of a server, or an outcome that finishes or pauses the release. */
type ScanResult = { facts: ServerFacts; source: FactsSource } | { outcome: StageOutcome };

type UpstreamOfRelease = Pick<Release, 'id' | 'serverId' | 'upstreamUrl' | 'sealedUpstreamUrl'>;

@Injectable()
export class ExternalScan {
  constructor(
    private readonly egress: Egress,
    private readonly httpChannels: HttpChannels,
    private readonly credentialsService: CredentialsService,
    private readonly authorizationsService: AuthorizationsService,
    private readonly serverReleasesService: ServerReleasesService,
    private readonly vault: Vault,
    private readonly env: Env,
    private readonly tuning: Tuning,
  ) {}

  async run(release: Release, lease: ScanContext): Promise<ScanResult> {
    const target = credentialTarget(new URL(this.addressOf(release)), release, this.vault);
    try {
      return { facts: await this.read(release, target, lease), source: 'server' };
    } catch (error) {
      const mustAuthorize = error instanceof UpstreamAuthRequiredError;
      if (mustAuthorize || isForbidden(error)) {
        const facts = await this.cardOf(release.upstreamUrl ?? '');
        if (facts) {
          const message = 'The server wants authorization; what it offers is read from its server card';
          await lease.log({ stage: 'scan', level: 'info', message });
          return { facts, source: 'claims' };
        }
      }
      if (mustAuthorize) return { outcome: await this.askOwner(release, error.challenges, target) };
      if (error instanceof CredentialUnavailableError) return { outcome: failed('FAILURE', 'scan', error.message) };
      if (error instanceof UpstreamFailure) {
        const note = isForbidden(error) ? target.note : '';
        return { outcome: failed('FAILURE', 'scan', `${redactCredentials(error.message, target)}${note}`) };
      }
      throw error;
    }
  }

  /**
   * Uses the credentials in `target`, or else the token that the owner authorized.
   *
   * @param mustBeAuthorized true: an expired authorization rejects with AuthorizationRequiredError; false: the server
   * is read without it
   * @throws UpstreamFailure, CredentialUnavailableError, LeaseLostError
   */
  async read(
    release: UpstreamOfRelease,
    target: ScanTarget,
    lease: ScanContext,
    mustBeAuthorized = false,
  ): Promise<ServerFacts> {
    const owner: CredentialOwner = { kind: 'server', id: release.serverId };
    const upstreamUrl = this.addressOf(release);
    const bearer = (rejected?: string) =>
      this.credentialsService.accessToken(owner, upstreamUrl, rejected).catch((error: unknown) => {
        // Without a valid token, the server's 401 starts a new authorization.
        if (error instanceof AuthorizationRequiredError && !mustBeAuthorized) return null;
        throw error;
      });
    const channel = this.httpChannels.channelTo({
      ...target,
      bearer: target.headers.authorization ? undefined : bearer,
      connectTimeoutMs: this.env.upstreamConnectTimeoutMs,
    });
    const timeoutMs = this.tuning.releaseScanTimeoutMs;
    const redact = (message: string) => redactCredentials(message, target);
    return factsOfScan(await scanUnderLease(channel, lease, { timeoutMs, redact }));
  }

  /** Returns the address with its query values. */
  addressOf({ id, upstreamUrl, sealedUpstreamUrl }: UpstreamOfRelease): string {
    return sealedUpstreamUrl === null ? (upstreamUrl ?? '') : this.vault.open(sealedUpstreamUrl, id);
  }

  /** Returns the facts on the server's card; null if it publishes none. */
  async cardOf(upstreamUrl: string): Promise<ServerFacts | null> {
    const card = await fetchServerCard(this.egress, upstreamUrl, { timeoutMs: CARD_TIMEOUT_MS });
    return card && factsOfCard(card);
  }

  /** Requests authorization from the owner; the outcome is a failure if the request fails. */
  private async askOwner(release: Release, challenges: string[], { note }: ScanTarget): Promise<StageOutcome> {
    const label = formatQualifiedName(await this.serverReleasesService.namesOf(release.serverId));
    const request = { upstreamUrl: this.addressOf(release), challenge: challenges, label };
    try {
      await this.authorizationsService.begin({ kind: 'server', id: release.serverId }, request);
      const until = new Date(Date.now() + this.tuning.releaseAuthTimeoutMs);
      return {
        change: { status: 'AUTH_REQUIRED', leaseUntil: until },
        lines: [
          // Published tools look for exactly this string, and do not show it.
          { stage: 'scan', level: 'info', message: 'auth_required' },
          {
            stage: 'scan',
            level: 'info',
            message: `Authorize at ${RELEASE_SETUP_PAGE} and the release continues automatically.`,
          },
        ],
      };
    } catch (error) {
      if (!(error instanceof OAuthSetupError)) throw error;
      const way = 'Publish again with scanCredentials, or let the server publish /.well-known/mcp/server-card.json.';
      return failed('FAILURE', 'scan', `The server wants authorization. ${error.message} ${way}${note}`);
    }
  }
}

/** Returns true for a server that rejected the credentials and named no way to authorize. */
export function isForbidden(error: unknown): boolean {
  return error instanceof UpstreamError && error.failure === 'forbidden';
}
