import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { growingLru } from '../../../platform/limits/growing-lru.js';
import { ProgramStartError } from '../../../hosting/hosting.errors.js';
import { Hosting, type ProgramOwner } from '../../../hosting/hosting.js';
import type { Program, ProgramQuota, ProgramRef, ProgramValues, Trace } from '../../../hosting/hosting.types.js';
import { LogNamesRepository, type LogNames } from '../../../platform/telemetry/log-names.repository.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import { AccountLimitsService } from '../../auth/account-limits.service.js';
import { InvocationsService } from '../../logs/ingest/invocations.service.js';
import { FileLostError, ReleaseFiles } from '../release-files.js';
import { Release, type LogLevel, type LogLine } from '../release.entity.js';
import type { ReleaseCurrent } from '../releases.types.js';
import { bundleProgram, isScanned, releaseProgram } from '../program-ref.js';
import { ReleaseLogsRepository } from '../release-log.repository.js';
import { ProgramSettingsService } from '../../servers/settings/program-settings.service.js';

/** Maximum number of lines of a module; further lines are dropped. */
const LINES_MAX = 50;

/** Maximum number of tracked scans; a scan takes at most ten minutes. */
const SCANS_MAX = 1_000;

const SCAN_MS_MAX = 10 * 60_000;

/** Levels of console lines in the log of a release, in which `error` is reserved for the reason of a failure. */
const levels: Record<Trace['lines'][number]['level'], LogLevel> = {
  debug: 'info',
  log: 'info',
  info: 'info',
  warn: 'warning',
  error: 'warning',
};

@Injectable()
export class ScanTraces {
  private readonly logger = new Logger('releases');
  private readonly budgets = growingLru<{ lines: number; seen: Set<string> }>(SCANS_MAX, { ttl: SCAN_MS_MAX });
  private writing: Promise<void> = Promise.resolve();

  constructor(
    private readonly releaseLogsRepository: ReleaseLogsRepository,
    private readonly pubSub: PubSub,
  ) {}

  /**
   * Runs in the background. Each message is written once, because a scan sends several requests. Exceptions of a bundle
   * are errors of its calls, which the scan reports.
   */
  appendTrace({ ref, lines, exceptions }: Trace): void {
    const budget = this.budgets.get(ref.id) ?? { lines: LINES_MAX, seen: new Set<string>() };
    this.budgets.set(ref.id, budget);
    const written = [
      ...lines.map(({ level, message }): LogLine => ({ stage: 'scan', level: levels[level], message })),
      ...(ref.engine === 'bundle' ? [] : exceptions).map(({ name, message }): LogLine => {
        return { stage: 'scan', level: 'warning', message: `The module threw ${name}: ${message}` };
      }),
    ]
      .filter(({ message }) => !budget.seen.has(message) && budget.seen.add(message))
      .slice(0, budget.lines);
    budget.lines -= written.length;
    if (written.length === 0) return;
    this.writing = this.writing.then(async () => {
      try {
        await this.releaseLogsRepository.append(ref.id, written);
        this.pubSub.publish('releases.changed', { id: ref.id });
      } catch (error) {
        const names = await this.releaseLogsRepository.namesOf(ref.id);
        const msg = 'the output of a module during its scan is lost';
        this.logger.warn({ msg, releaseId: ref.id, ...names, err: error });
      }
    });
  }
}

@Injectable()
export class ReleasePrograms implements ProgramOwner {
  constructor(
    @InjectRepository(Release) private readonly releaseRepository: Repository<Release>,
    private readonly releaseFiles: ReleaseFiles,
    private readonly programSettingsService: ProgramSettingsService,
    private readonly invocationsService: InvocationsService,
    private readonly scanTraces: ScanTraces,
    private readonly accountLimitsService: AccountLimitsService,
  ) {}

  async withProgram<T>(ref: ProgramRef, use: (program: Program) => Promise<T>): Promise<T> {
    const release = await this.releaseOf(ref);
    const values = await this.valuesFor(release);
    try {
      return await this.releaseFiles.withFile(release.id, ref.engine === 'bundle' ? 'bundle' : 'module', (file) =>
        use({ ref, file, configSchema: release.configSchema, ...values }),
      );
    } catch (error) {
      if (error instanceof FileLostError) throw new ProgramStartError(error.message, error);
      throw error;
    }
  }

  async valuesOf(ref: ProgramRef): Promise<ProgramValues> {
    return this.valuesFor(await this.releaseOf(ref));
  }

  quotaOf({ id }: ProgramRef): Promise<ProgramQuota | null> {
    return this.accountLimitsService.programQuota({ releaseId: id });
  }

  namesOf({ id }: ProgramRef): Promise<LogNames> {
    return LogNamesRepository.find(this.releaseRepository.manager, 'release', id);
  }

  recordTrace(trace: Trace): void {
    if (isScanned(trace.ref)) return this.scanTraces.appendTrace(trace);
    const { ref, invocationId, request, outcome, cpuMs, wallMs, lines, exceptions } = trace;
    const observed = { id: invocationId, serverId: ref.ownerId, lines, exceptions };
    // Records a part of an invocation of the caller's process, or a complete one for requests that no other process records.
    if (!request) return this.invocationsService.record({ ...observed, outcome, cpuMs });
    const { at, method, path, rpcMethod, status } = request;
    this.invocationsService.record({
      ...{ ...observed, releaseId: ref.id, at, method, rpcMethod, status },
      url: path.split('?')[0] ?? '',
      outcome: outcome ?? 'ok',
      cpuMs: cpuMs ?? 0,
      wallMs: wallMs ?? 0,
    });
  }

  private async releaseOf(ref: ProgramRef): Promise<Release> {
    const owner = isScanned(ref) ? {} : { serverId: ref.ownerId };
    const type = ref.engine === 'bundle' ? 'stdio' : 'hosted_shttp';
    const release = await this.releaseRepository.findOneBy({ id: ref.id, ...owner, type });
    if (!release) throw new ProgramStartError('The release no longer exists: its server was deleted.');
    return release;
  }

  private async valuesFor({ serverId, hosting }: Release): Promise<ProgramValues> {
    const names = hosting?.secretNames ?? [];
    const secrets = await this.programSettingsService.secretsOf(serverId, names.length === 0 ? null : names);
    return { secrets, egressAllow: await this.programSettingsService.egressAllowOf(serverId) };
  }
}

@Injectable()
export class ProgramChanges implements OnModuleInit {
  private readonly logger = new Logger('releases');

  constructor(
    @InjectRepository(Release) private readonly releaseRepository: Repository<Release>,
    private readonly hosting: Hosting,
    private readonly pubSub: PubSub,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.pubSub.subscribe('releases.current', (current) => void this.onCurrentRelease(current));
    await this.pubSub.subscribe('servers.changed', ({ id }) => void this.hosting.renew(id));
    await this.pubSub.subscribe('servers.deleted', ({ id }) => void this.hosting.forget(id));
  }

  private async onCurrentRelease({ serverId, releaseId }: ReleaseCurrent): Promise<void> {
    try {
      const release = await this.releaseRepository.findOneBy({ id: releaseId, serverId });
      if (!release || release.type === 'external_shttp') return;
      const isBundle = release.type === 'stdio';
      const isStateful = release.hosting?.stateful ?? false;
      await this.hosting.current(
        isBundle ? bundleProgram(releaseId, serverId) : releaseProgram(releaseId, serverId, isStateful),
      );
    } catch (error) {
      const names = await LogNamesRepository.find(this.releaseRepository.manager, 'server', serverId);
      this.logger.warn({ msg: 'the replaced release was not stopped; it stops when it is idle', ...names, err: error });
    }
  }
}
