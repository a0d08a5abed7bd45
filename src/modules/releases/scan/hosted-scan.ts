import { Injectable } from '@nestjs/common';
import { Tuning } from '../../../config/tuning.js';
import { UpstreamFailure } from '../../../mcp/protocol/mcp-errors.js';
import { hostedFailureIn, messageForOwner, ProgramStartError } from '../../../hosting/hosting.errors.js';
import { Hosting } from '../../../hosting/hosting.js';
import { quote } from '../../../platform/text/quoted.js';
import { configFields, type ConfigField } from '../config/config-fields.js';
import { HostedChannelsService } from '../../../hosting/mcp/hosted-channels.service.js';
import type { LogLine, Release } from '../release.entity.js';
import { scannedProgram } from '../program-ref.js';
import { failed, type StageOutcome } from '../release-lease.js';
import { scanUnderLease, type ScanContext } from './leased-scan.js';
import { factsOfCard, factsOfScan, type FactsSource, type ServerFacts } from './server-facts.js';

/** MCP paths of modules: a factory's server responds at any path, a module with `fetch` at its author's choice. */
const PATHS = ['/', '/mcp'];

interface ScanConfig {
  query: [name: string, value: string][];
  invented: string[];
}

export type HostedScanResult = { facts: ServerFacts; source: FactsSource; mcpPath: string } | { outcome: StageOutcome };

/** Scans a hosted server, since its published card is only a claim. */
@Injectable()
export class HostedScan {
  constructor(
    private readonly hostedChannelsService: HostedChannelsService,
    private readonly hosting: Hosting,
    private readonly tuning: Tuning,
  ) {}

  async run(release: Release, lease: ScanContext): Promise<HostedScanResult> {
    const closed: Promise<void>[] = [];
    const program = scannedProgram(release.id, release.hosting?.stateful ?? false);
    const config = scanConfig(configFields({ properties: {}, ...release.configSchema, type: 'object' }, 'hosted'));
    const options = { timeoutMs: this.tuning.releaseScanTimeoutMs, onClose: (end: Promise<void>) => closed.push(end) };
    const { query } = config;
    let failure: UpstreamFailure | null = null;
    try {
      for (const mcpPath of PATHS) {
        try {
          const channel = this.hostedChannelsService.channelTo(program, {
            mcpPath,
            name: 'The module',
            query,
            isScan: true,
          });
          const facts = factsOfScan(await scanUnderLease(channel, lease, options));
          for (const line of differences(release, facts)) await lease.log(line);
          return { facts, source: 'server', mcpPath };
        } catch (error) {
          if (!(error instanceof UpstreamFailure)) throw error;
          // A module that does not start fails at every path.
          if (hostedFailureIn(error)) return await this.handleRefusal(release, error, config, lease);
          failure ??= error;
        }
      }
      return await this.handleRefusal(release, failure as UpstreamFailure, config, lease);
    } finally {
      // In the background: nothing depends on it, and it never rejects. A session that closes later would place the
      // program again.
      void Promise.all(closed).then(() => this.hosting.forget(program.ownerId));
    }
  }

  /**
   * Handles a rejected scan. A module can reject made-up values, so its published card is used if there were some. Otherwise the release fails.
   */
  private async handleRefusal(
    release: Release,
    failure: UpstreamFailure,
    { invented }: ScanConfig,
    lease: ScanContext,
  ): Promise<HostedScanResult> {
    const isStarted = !(hostedFailureIn(failure) instanceof ProgramStartError);
    if (!isStarted || invented.length === 0 || release.serverCard === null) {
      return { outcome: failed('FAILURE', 'scan', messageForOwner(failure)) };
    }
    const names = invented.map((name) => quote(name)).join(', ');
    const message =
      `The module wants ${names} of its callers and does not answer without: ${messageForOwner(failure)} ` +
      'What it offers is read from the card it was published with.';
    await lease.log({ stage: 'scan', level: 'warning', message });
    return { facts: factsOfCard(release.serverCard), source: 'claims', mcpPath: '/' };
  }
}

const lists = ['tools', 'resources', 'prompts'] as const;

function differences({ serverCard }: Release, facts: ServerFacts): LogLine[] {
  const claimed = factsOfCard(serverCard);
  return lists.flatMap((list): LogLine[] => {
    const [claims, has] = [claimed[list], facts[list]];
    if (claims === null || has === null) return [];
    const [listed, served] = [namesOf(claims), namesOf(has)];
    const missing = listed.filter((name) => !served.includes(name));
    const extra = served.filter((name) => !listed.includes(name));
    if (missing.length === 0 && extra.length === 0) return [];
    const quoteNames = (names: string[]) => names.map((name) => quote(name)).join(', ');
    const lacks = missing.length === 0 ? '' : ` The module does not have ${quoteNames(missing)}.`;
    const adds = extra.length === 0 ? '' : ` It has ${quoteNames(extra)} besides.`;
    const message = `The card it was published with lists other ${list} than the module: the module counts.${lacks}${adds}`;
    return [{ stage: 'scan', level: 'warning', message }];
  });
}

function namesOf(items: Record<string, unknown>[]): string[] {
  return items.map(({ name }) => String(name));
}

/** Returns the configuration of a scan. Examples replace missing defaults, and made-up values replace missing examples of required properties. */
function scanConfig(fields: readonly ConfigField[]): ScanConfig {
  const config: ScanConfig = { query: [], invented: [] };
  for (const field of fields) {
    const name = field.path.join('.');
    const { examples, example } = field.schema;
    const [first = example] = Array.isArray(examples) ? (examples as unknown[]) : [];
    const value = field.fallback ?? (typeof first === 'string' ? first : JSON.stringify(first));
    if (value !== undefined) config.query.push([name, value]);
    else if (field.isRequired) {
      config.query.push([name, madeUp(field)]);
      config.invented.push(name);
    }
  }
  return config;
}

function madeUp({ type, allowed, schema }: ConfigField): string {
  const [first] = allowed ?? [];
  if (first !== undefined) return first;
  switch (type) {
    case 'boolean':
      return 'false';
    case 'number':
    case 'integer':
      return String(typeof schema.minimum === 'number' ? Math.ceil(schema.minimum) : 1);
    case 'json':
      return schema.type === 'array' ? '[]' : '{}';
    case 'string':
      return schema.format === 'uri' || schema.format === 'url' ? 'https://example.com/' : 'example';
  }
}
