import { Injectable } from '@nestjs/common';
import { DomainError } from '../../platform/errors/domain-error.js';
import { Egress } from '../../platform/egress/egress.js';
import { ModuleChecks } from './module-checks.js';
import { ReleaseFiles } from './release-files.js';
import type { ReleaseLease } from './release-lease.js';
import type { LogLine } from './release-log.js';
import type { Release } from './release.entity.js';
import { failed, type ReleaseStage, type StageOutcome } from './stage-outcome.js';

/** Checks what was published: the address of an external server, a bundle, or a module, without running anything. */
@Injectable()
export class DeployStage implements ReleaseStage {
  constructor(
    private readonly files: ReleaseFiles,
    private readonly egress: Egress,
    private readonly modules: ModuleChecks,
  ) {}

  async run(release: Release, lease: ReleaseLease): Promise<StageOutcome> {
    try {
      return { lines: await this.check(release, lease) };
    } catch (error) {
      if (error instanceof DomainError) return failed('FAILURE', 'deploy', error.message);
      throw error;
    }
  }

  private async check(release: Release, lease: ReleaseLease): Promise<LogLine[]> {
    switch (release.type) {
      case 'external_shttp': {
        const { origin, pathname } = this.egress.check(release.upstreamUrl ?? '');
        return [info(`External server at ${origin}${pathname}`)];
      }
      case 'stdio':
        return this.checkBundle(release);
      case 'hosted_shttp':
        return this.checkModule(release, lease);
    }
  }

  private async checkBundle({ id, runtime: given }: Release): Promise<LogLine[]> {
    const { serverInfo, runtime } = await this.files.readBundle(id);
    const lines = [info(`Bundle ${serverInfo.name} ${serverInfo.version}, run by ${runtime}`)];
    if (given === null || given === runtime) return lines;
    const message = `It was published with the runtime ${given}, but its manifest says ${runtime}: the manifest counts.`;
    return [...lines, { stage: 'deploy', level: 'warning', message }];
  }

  private async checkModule({ id }: Release, lease: ReleaseLease): Promise<LogLine[]> {
    const leaving = new AbortController();
    try {
      const check = this.files.withFile(id, 'module', (path) => this.modules.check(path, leaving.signal));
      const { form, exports } = await lease.whileHeld(check);
      return [info(`Module of the form "${form}" with the exports ${exports.join(', ')}`)];
    } finally {
      // A lease that is lost ends the check, not only the wait for it.
      leaving.abort();
    }
  }
}

function info(message: string): LogLine {
  return { stage: 'deploy', level: 'info', message };
}
