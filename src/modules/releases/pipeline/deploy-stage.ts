import { Injectable } from '@nestjs/common';
import { DomainError } from '../../../platform/errors/domain-error.js';
import { Egress } from '../../../platform/egress/egress.js';
import { Hosting } from '../../../hosting/hosting.js';
import type { ModuleFacts } from '../../../hosting/hosted-module.js';
import { HostingUnavailableError, InvalidModuleError } from '../../../hosting/hosting.errors.js';
import { ReleaseFiles } from '../release-files.js';
import { type ReleaseLease, failed, type ReleaseStage, type StageOutcome } from '../release-lease.js';
import type { LogLine, HostingRequest, Release } from '../release.entity.js';
import { ChildProcessKilledError, runInChildProcess } from '../../../platform/child-process/run-in-child-process.js';
import type { ModuleCheckAnswer } from './module-check.process.js';

/** Limits of a check. A module of 10 MB takes 2 to 5 s and less than 256 MB; a single literal of data takes several times as much. */
const LIMITS = { memoryMbMax: 512, timeoutMs: 15_000 };

/** Checks modules in a child process, so that a large module does not block this process. */
@Injectable()
export class ModuleChecks {
  private last: Promise<unknown> = Promise.resolve();

  /**
   * Checks run one at a time, because each can use a whole CPU.
   *
   * @throws InvalidModuleError, including for a module beyond the limits; the signal's reason if it aborts the check
   */
  async check(path: string, signal: AbortSignal, limits = LIMITS): Promise<ModuleFacts> {
    const reading = this.last.then(() => read(path, signal, limits));
    this.last = reading.catch(() => undefined);
    return reading;
  }
}

/** A checked module, with the hosting request that it confirms. */
interface Checked {
  lines: LogLine[];
  hosting?: HostingRequest;
}

/** Checks the release without running it. */
@Injectable()
export class DeployStage implements ReleaseStage {
  constructor(
    private readonly releaseFiles: ReleaseFiles,
    private readonly egress: Egress,
    private readonly moduleChecks: ModuleChecks,
    private readonly hosting: Hosting,
  ) {}

  async run(release: Release, lease: ReleaseLease): Promise<StageOutcome> {
    try {
      const { lines, hosting } = await this.check(release, lease);
      return { lines, ...(hosting && { change: { hosting } }) };
    } catch (error) {
      if (error instanceof DomainError) return failed('FAILURE', 'deploy', error.message);
      throw error;
    }
  }

  private async check(release: Release, lease: ReleaseLease): Promise<Checked> {
    switch (release.type) {
      case 'external_shttp': {
        const { origin, pathname } = this.egress.check(release.upstreamUrl ?? '');
        return { lines: [info(`External server at ${origin}${pathname}`)] };
      }
      case 'stdio': {
        const { serverInfo, runtime } = await this.releaseFiles.readBundle(release.id);
        const line = info(`Bundle ${serverInfo.name} ${serverInfo.version}, run by ${runtime}`);
        if (release.runtime === null || release.runtime === runtime) return { lines: [line] };
        const message = `It was published with the runtime ${release.runtime}, but its manifest says ${runtime}: the manifest counts.`;
        return { lines: [line, { stage: 'deploy', level: 'warning', message }] };
      }
      case 'hosted_shttp':
        return this.checkModule(release, lease);
    }
  }

  private async checkModule({ id, hosting, configSchema }: Release, lease: ReleaseLease): Promise<Checked> {
    const whyNot = await this.hosting.whyNot('worker');
    const leaving = new AbortController();
    try {
      const check = this.releaseFiles.withFile(id, 'module', (path) => this.moduleChecks.check(path, leaving.signal));
      const facts = await lease.whileHeld(check);
      if (whyNot !== null) {
        throw new HostingUnavailableError(
          `${whyNot} The module's syntax and exports are fine, and it is stored. ` +
            'Run it elsewhere and publish its URL, or publish again when hosting is enabled.',
        );
      }
      const { form, exports, stateful } = facts;
      const message = `Module of the form "${form}" with the exports ${exports.join(', ')}`;
      const requested = hosting ?? { stateful: false, hasAuthAdapter: false, secretNames: [] };
      // The options that the module declares take precedence over the published ones. Only servers of a factory have
      // sessions; a module with its own `fetch` manages its state itself.
      const isOpen = stateful === null && exports.includes('stateful');
      const effective = {
        ...requested,
        stateful: form !== 'fetch' && (isOpen ? requested.stateful : stateful === true),
        hasAuthAdapter: form !== 'fetch' && exports.includes('createAuthAdapter'),
      };
      const isConfigLost = exports.includes('configSchema') && configSchema === null;
      return {
        lines: [info(message), ...differences(requested, effective), ...(isConfigLost ? [CONFIG_LOST] : [])],
        hosting: effective,
      };
    } finally {
      leaving.abort();
    }
  }
}

/** Reports differences. A published false can be the default of an omitted option, so only a published true contradicts the module. */
function differences(requested: HostingRequest, effective: HostingRequest): LogLine[] {
  return (['stateful', 'hasAuthAdapter'] as const)
    .filter((name) => requested[name] !== effective[name])
    .map((name) => {
      if (effective[name]) return info(DECLARED[name]);
      const message = `It was published with ${name} true, but the module says false: the module counts.`;
      return { stage: 'deploy', level: 'warning', message };
    });
}

const DECLARED = {
  stateful: 'The module is stateful: it has a session for each client',
  hasAuthAdapter: 'The module has an auth adapter',
};

const CONFIG_LOST: LogLine = {
  stage: 'deploy',
  level: 'warning',
  message:
    'The module exports configSchema, but it was published without one, so it only gets its defaults: ' +
    'publish it with the same schema as configSchema, in JSON Schema, to let callers configure it.',
};

function info(message: string): LogLine {
  return { stage: 'deploy', level: 'info', message };
}

async function read(path: string, signal: AbortSignal, limits: typeof LIMITS): Promise<ModuleFacts> {
  try {
    const file = 'modules/releases/pipeline/module-check.process.js';
    const answer = await runInChildProcess<ModuleCheckAnswer>(file, [path], { ...limits, signal });
    if ('facts' in answer) return answer.facts;
    throw new InvalidModuleError(answer.refused);
  } catch (error) {
    if (!(error instanceof ChildProcessKilledError)) throw error;
    const most = error.reason === 'memory' ? `${limits.memoryMbMax} MB of memory` : `${limits.timeoutMs / 1000} s`;
    throw new InvalidModuleError(
      `The module takes more than ${most} to be read: make it smaller, for example by minifying it and leaving large data out of it.`,
    );
  }
}
