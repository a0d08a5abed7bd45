import { Injectable } from '@nestjs/common';
import { Env } from '../../../config/env.js';
import { UpstreamFailure } from '../../../mcp/protocol/mcp-errors.js';
import type { ServerScan } from '../../../mcp/client/server-scan.js';
import { hostedFailureIn, ProgramStartError } from '../../../hosting/hosting.errors.js';
import { Hosting } from '../../../hosting/hosting.js';
import { quoted } from '../../../platform/text/quoted.js';
import { compileConfig, type CompiledConfig } from '../config/config-map.js';
import { HostedChannelsService } from '../../../hosting/mcp/hosted-channels.service.js';
import { scanUnderLease, type ScanHold } from './leased-scan.js';
import type { LogLine } from '../release-log.entity.js';
import type { Release } from '../release.entity.js';
import { scannedProgram } from '../program-ref.js';
import { factsOfCard, factsOfScan, type FactsSource, type ServerFacts } from './server-facts.js';
import { failed, type StageOutcome } from '../stage-outcome.js';
import type { ConfigField } from '../config/config-fields.js';

/** Where modules answer MCP: what a factory makes answers anywhere, a module with `fetch` where its author thought. */
const PATHS = ['/', '/mcp'];

/** Values for a look at a server that wants some of its callers. */
interface ScanConfig {
  query: [name: string, value: string][];
  /** The required values nobody gave, which were made up. */
  invented: string[];
}

/** What the module offers and where it answers, or what ends its release. */
export type HostedScanResult = { facts: ServerFacts; source: FactsSource; mcpPath: string } | { outcome: StageOutcome };

/** Starts the module of a release and asks it what it offers. What it was published with is only a claim. */
@Injectable()
export class HostedScan {
  constructor(
    private readonly hosted: HostedChannelsService,
    private readonly hosting: Hosting,
    private readonly env: Env,
  ) {}

  async run(release: Release, lease: ScanHold): Promise<HostedScanResult> {
    try {
      return await this.look(release, lease);
    } finally {
      // Not waited for: nothing depends on it, and it never rejects.
      void this.hosting.forget(scannedProgram(release.id, false).ownerId);
    }
  }

  private async look(release: Release, lease: ScanHold): Promise<HostedScanResult> {
    const config = scanConfig(compileConfig({ properties: {}, ...release.configSchema, type: 'object' }, 'hosted'));
    let first: UpstreamFailure | null = null;
    for (const mcpPath of PATHS) {
      try {
        const facts = factsOfScan(await this.scan(release, mcpPath, config, lease));
        for (const line of differences(release, facts)) await lease.log(line);
        return { facts, source: 'server', mcpPath };
      } catch (error) {
        if (!(error instanceof UpstreamFailure)) throw error;
        // What does not start, does not start at another path either.
        if (hostedFailureIn(error)) return this.refused(release, error, config, lease);
        first ??= error;
      }
    }
    return this.refused(release, first as UpstreamFailure, config, lease);
  }

  private scan(release: Release, mcpPath: string, config: ScanConfig, lease: ScanHold): Promise<ServerScan> {
    const program = scannedProgram(release.id, release.hosting?.stateful ?? false);
    const channel = this.hosted.channelTo(program, { mcpPath, name: 'The module', query: config.query });
    return scanUnderLease(channel, lease, { timeoutMs: this.env.releaseScanTimeoutMs });
  }

  /** A module that wants values of its callers cannot be blamed for refusing made-up ones: then its card is believed. */
  private async refused(
    release: Release,
    failure: UpstreamFailure,
    { invented }: ScanConfig,
    lease: ScanHold,
  ): Promise<HostedScanResult> {
    const isStarted = !(hostedFailureIn(failure) instanceof ProgramStartError);
    if (!isStarted || invented.length === 0 || release.serverCard === null) {
      return { outcome: failed('FAILURE', 'scan', failure.message) };
    }
    const names = invented.map((name) => quoted(name)).join(', ');
    const message =
      `The module wants ${names} of its callers and does not answer without: ${failure.message} ` +
      'What it offers is read from the card it was published with.';
    await lease.log({ stage: 'scan', level: 'warning', message });
    return { facts: factsOfCard(release.serverCard), source: 'claims', mcpPath: '/' };
  }
}

const lists = ['tools', 'resources', 'prompts'] as const;

/** What the card claims and the module does not have, and the other way round. */
function differences({ serverCard }: Release, facts: ServerFacts): LogLine[] {
  const claimed = factsOfCard(serverCard);
  return lists.flatMap((list): LogLine[] => {
    const [claims, has] = [claimed[list], facts[list]];
    if (claims === null || has === null) return [];
    const [listed, found] = [namesOf(claims), namesOf(has)];
    const missing = listed.filter((name) => !found.includes(name));
    const extra = found.filter((name) => !listed.includes(name));
    if (missing.length === 0 && extra.length === 0) return [];
    const lacks = missing.length === 0 ? '' : ` The module does not have ${shown(missing)}.`;
    const adds = extra.length === 0 ? '' : ` It has ${shown(extra)} besides.`;
    const message = `The card it was published with lists other ${list} than the module: the module counts.${lacks}${adds}`;
    return [{ stage: 'scan', level: 'warning', message }];
  });
}

/** A sentence holds so many names. */
const SHOWN_MAX = 10;

function shown(names: string[]): string {
  const more = names.length > SHOWN_MAX ? ` and ${names.length - SHOWN_MAX} more` : '';
  return `${names
    .slice(0, SHOWN_MAX)
    .map((name) => quoted(name))
    .join(', ')}${more}`;
}

function namesOf(items: Record<string, unknown>[]): string[] {
  return items.map(({ name }) => String(name));
}

/** The defaults of a schema, its examples where there is no default, and for the rest of what is required anything that fits. */
function scanConfig({ fields }: CompiledConfig): ScanConfig {
  const config: ScanConfig = { query: [], invented: [] };
  for (const field of fields) {
    const name = field.path.join('.');
    const given = field.fallback ?? exampleOf(field);
    if (given !== undefined) config.query.push([name, given]);
    else if (field.isRequired) {
      config.query.push([name, madeUp(field)]);
      config.invented.push(name);
    }
  }
  return config;
}

function exampleOf({ schema: { examples, example } }: ConfigField): string | undefined {
  const [first = example] = Array.isArray(examples) ? (examples as unknown[]) : [];
  if (first === undefined) return undefined;
  return typeof first === 'string' ? first : JSON.stringify(first);
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
