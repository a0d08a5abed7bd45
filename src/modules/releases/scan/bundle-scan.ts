/**
 * Scans a bundle. Its manifest lists what it claims to offer.
 *
 * If bundles run here, it is also started as for a caller, with the scan credentials, the secrets of its server and the
 * defaults of its manifest, and read as any other server. It is not started, which the log reports, if a required value
 * is missing or the host lacks the `uv` that it needs. A bundle that has all values but exits or does not respond fails
 * with FAILURE_SCAN, or with FAILURE if Slipway had no capacity for it.
 */
import { Injectable } from '@nestjs/common';
import { Env } from '../../../config/env.js';
import { Tuning } from '../../../config/tuning.js';
import { hostedFailureIn, messageForOwner, ProgramStartError } from '../../../hosting/hosting.errors.js';
import { Hosting } from '../../../hosting/hosting.js';
import { HostedChannelsService } from '../../../hosting/mcp/hosted-channels.service.js';
import { UpstreamFailure } from '../../../mcp/protocol/mcp-errors.js';
import { quote } from '../../../platform/text/quoted.js';
import { Vault } from '../../../platform/vault/vault.js';
import { ProgramSettingsService } from '../../servers/settings/program-settings.service.js';
import { configFields } from '../config/config-fields.js';
import { scannedBundle } from '../program-ref.js';
import { ReleaseFiles } from '../release-files.js';
import { failed, type StageOutcome } from '../release-lease.js';
import type { Release } from '../release.entity.js';
import { scanUnderLease, type ScanContext } from './leased-scan.js';
import { redactCredentials } from './scan-credentials.js';
import { factsOfBundle, factsOfScan, type ServerFacts } from './server-facts.js';

/** The facts, with the reason if the bundle was not started; or the outcome that finishes the release. */
export type BundleScanResult =
  | { facts: ServerFacts; source: 'server' }
  | { facts: ServerFacts; source: 'files'; whyNot: string }
  | { outcome: StageOutcome };

@Injectable()
export class BundleScan {
  constructor(
    private readonly releaseFiles: ReleaseFiles,
    private readonly hostedChannelsService: HostedChannelsService,
    private readonly hosting: Hosting,
    private readonly programSettingsService: ProgramSettingsService,
    private readonly vault: Vault,
    private readonly env: Env,
    private readonly tuning: Tuning,
  ) {}

  /** @throws LeaseLostError; errors of an unusable bundle */
  async run(release: Release, lease: ScanContext, sealedCredentials: string | null): Promise<BundleScanResult> {
    const bundle = await this.releaseFiles.readBundle(release.id);
    const claimed = factsOfBundle(bundle, release.serverCard);
    const credentials =
      sealedCredentials === null
        ? {}
        : (JSON.parse(this.vault.open(sealedCredentials, release.id)) as Record<string, string>);
    const lacking = await this.findLacking(release.serverId, claimed, credentials);
    const needs = `needs ${lacking.map((name) => quote(name)).join(', ')}: send it as scanCredentials, store it as a secret, or give it a default.`;
    const reason = (await this.hosting.whyNot('bundle')) ?? (lacking.length > 0 ? needs : null);
    if (reason !== null) {
      const whyNot = `The bundle was not started: ${reason}`;
      if (this.env.runtimeBundles !== 'off') await lease.log({ stage: 'scan', level: 'warning', message: whyNot });
      return { facts: claimed, source: 'files', whyNot };
    }
    const program = scannedBundle(release.id);
    const redact = (message: string) => redactCredentials(message, { secrets: Object.values(credentials) });
    const query = Object.entries(credentials);
    const channel = this.hostedChannelsService.channelTo(program, {
      mcpPath: '/',
      name: 'The bundle',
      query,
      isScan: true,
    });
    try {
      const scan = await scanUnderLease(channel, lease, {
        timeoutMs: this.tuning.releaseScanTimeoutMs,
        redact,
        // A session that closes later would place the program again.
        onClose: (closed) => void closed.then(() => this.hosting.forget(program.ownerId)),
      });
      const { runtime, configSchema, serverInfo } = claimed;
      const facts = factsOfScan(scan);
      // People see the manifest when they install a bundle, so its strings take precedence.
      return {
        facts: { ...facts, serverInfo: { ...facts.serverInfo, ...serverInfo }, runtime, configSchema },
        source: 'server',
      };
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) throw error;
      const failure = hostedFailureIn(error);
      // A shell's exit code for a missing program.
      if (bundle.isOfUv && /\bexit code 127\b/.test(error.message)) {
        const whyNot = 'The bundle was not started: it needs "uv", which the host lacks.';
        await lease.log({ stage: 'scan', level: 'warning', message: whyNot });
        return { facts: claimed, source: 'files', whyNot };
      }
      const isOurs = failure !== null && !failure.mayHaveRun && !(failure instanceof ProgramStartError);
      return { outcome: failed(isOurs ? 'FAILURE' : 'FAILURE_SCAN', 'scan', redact(messageForOwner(error))) };
    }
  }

  /** Returns required values without default, credential or secret. */
  private async findLacking(
    serverId: string,
    { configSchema = {} }: ServerFacts,
    credentials: Record<string, string>,
  ): Promise<string[]> {
    const fields = configFields({ properties: {}, ...configSchema, type: 'object' }, 'hosted');
    const names = fields
      .filter(({ isRequired, fallback }) => isRequired && !fallback)
      .map(({ path }) => path.join('.'))
      .filter((name) => !credentials[name]);
    if (names.length === 0) return [];
    const secrets = await this.programSettingsService.secretsOf(serverId, names);
    return names.filter((name) => !secrets[name]);
  }
}
