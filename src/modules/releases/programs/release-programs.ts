import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { ProgramStartError } from '../../../hosting/hosting.errors.js';
import { Hosting } from '../../../hosting/hosting.js';
import type { Program, ProgramRef, ProgramValues, Trace } from '../../../hosting/hosting.types.js';
import { Programs, type ProgramOwner } from '../../../hosting/programs.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import { InvocationsService } from '../../logs/ingest/invocations.service.js';
import type { ServerChange } from '../../servers/server.types.js';
import { ServerEgressService } from '../../servers/settings/server-runtime.service.js';
import { SecretValuesService } from '../../servers/settings/server-secrets.service.js';
import { ReleaseFiles } from '../release-files.js';
import { Release } from '../release.entity.js';
import { FileLostError } from '../releases.errors.js';
import type { ReleaseCurrent } from '../releases.types.js';
import { bundleProgram, isScanned, releaseProgram } from '../program-ref.js';
import { ScanTraces } from './scan-traces.js';
import type { Invocation, InvocationPiece } from '../../logs/invocation.types.js';

/** The modules and bundles of releases, for those who run them. */
@Injectable()
export class ReleasePrograms implements ProgramOwner, OnModuleInit {
  private readonly logger = new Logger('releases');

  constructor(
    @InjectRepository(Release) private readonly releases: Repository<Release>,
    private readonly files: ReleaseFiles,
    private readonly secrets: SecretValuesService,
    private readonly egress: ServerEgressService,
    private readonly invocations: InvocationsService,
    private readonly scans: ScanTraces,
    private readonly programs: Programs,
    private readonly hosting: Hosting,
    private readonly pubSub: PubSub,
  ) {}

  async onModuleInit(): Promise<void> {
    this.programs.register('release', this);
    await this.pubSub.subscribe('releases.current', (current) => void this.replaced(current));
    await this.pubSub.subscribe('servers.changed', ({ id }) => void this.hosting.renew(id));
    await this.pubSub.subscribe('servers.deleted', ({ id }) => void this.hosting.forget(id));
  }

  async withProgram<T>(ref: ProgramRef, use: (program: Program) => Promise<T>): Promise<T> {
    const release = await this.releaseOf(ref);
    const values = await this.given(release);
    try {
      return await this.files.withFile(release.id, ref.engine === 'bundle' ? 'bundle' : 'module', (file) =>
        use({ ref, file, configSchema: release.configSchema, ...values }),
      );
    } catch (error) {
      if (error instanceof FileLostError) throw new ProgramStartError(error.message, error);
      throw error;
    }
  }

  async valuesOf(ref: ProgramRef): Promise<ProgramValues> {
    return this.given(await this.releaseOf(ref));
  }

  /** A program that is scanned tells its release's log, any other its server's. */
  traced(trace: Trace): void {
    if (isScanned(trace.ref)) this.scans.take(trace);
    else if (trace.request) this.invocations.record(toInvocation(trace, trace.request));
    else this.invocations.append(toPiece(trace));
  }

  private async releaseOf(ref: ProgramRef): Promise<Release> {
    const owner = isScanned(ref) ? {} : { serverId: ref.ownerId };
    const type = ref.engine === 'bundle' ? 'stdio' : 'hosted_shttp';
    const release = await this.releases.findOneBy({ id: ref.id, ...owner, type });
    if (!release) throw new ProgramStartError('The release is gone: its server was deleted.');
    return release;
  }

  private async given({ serverId, hosting }: Release): Promise<ProgramValues> {
    const names = hosting?.secretNames ?? [];
    const secrets = await this.secrets.reveal(serverId, names.length === 0 ? null : names);
    return { secrets, egressAllow: await this.egress.allowOf(serverId) };
  }

  private async replaced({ serverId, releaseId }: ReleaseCurrent): Promise<void> {
    try {
      const release = await this.releases.findOneBy({ id: releaseId, serverId });
      if (!release || release.type === 'external_shttp') return;
      const isBundle = release.type === 'stdio';
      const isStateful = release.hosting?.stateful ?? false;
      await this.hosting.current(
        isBundle ? bundleProgram(releaseId, serverId) : releaseProgram(releaseId, serverId, isStateful),
      );
    } catch (error) {
      this.logger.warn({ msg: 'what a release replaces runs until nobody calls it', err: error });
    }
  }
}

/** A request that nobody else keeps a record of, such as the opening of a session. */
function toInvocation(trace: Trace, request: NonNullable<Trace['request']>): Invocation {
  const { ref, outcome = 'ok', cpuMs = 0, wallMs = 0 } = trace;
  return {
    ...toPiece(trace),
    releaseId: ref.id,
    at: request.at,
    method: request.method,
    url: request.path.split('?')[0] ?? '',
    rpcMethod: request.rpcMethod,
    toolName: null,
    status: request.status,
    outcome,
    cpuMs,
    wallMs,
  };
}

/** What the runtime saw of a request that is recorded where it was called. */
function toPiece({ ref, invocationId, outcome, cpuMs, lines, exceptions }: Trace): InvocationPiece {
  return {
    id: invocationId,
    serverId: ref.ownerId,
    ...(outcome === undefined ? {} : { outcome }),
    ...(cpuMs === undefined ? {} : { cpuMs }),
    lines,
    exceptions: exceptions.map(({ at, name, message }) => ({ at, name, message })),
  };
}
