import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { AccountQuotas } from '../../auth/account-quota.decorator.js';
import { growingLru } from '../../../platform/limits/growing-lru.js';
import { Repository } from 'typeorm';
import { ProgramStartError } from '../../../hosting/hosting.errors.js';
import type { Program, ProgramQuota, ProgramRef, ProgramValues, Trace } from '../../../hosting/hosting.types.js';
import type { ProgramOwner } from '../../../hosting/hosting.js';
import { AccountLimitsService } from '../../auth/account-limits.service.js';
import { ConnectionCallsService } from '../../logs/connection-calls.service.js';
import type { ConnectionCall } from '../../logs/invocation.types.js';
import { LogNamesRepository, type LogNames } from '../../../platform/telemetry/log-names.repository.js';
import { Connection } from '../core/connection.entity.js';
import { InvalidSourceError } from '../core/connections.errors.js';
import { SourceCompiler } from './source-compiler.service.js';

/** Values of modules of connections, which have no secrets and no egress rules. */
const NO_VALUES: ProgramValues = { secrets: {}, egressAllow: null };

@AccountQuotas({
  owners: {
    connectionId: 'SELECT n.account_id FROM connections c JOIN namespaces n ON n.id = c.namespace_id WHERE c.id = $1',
  },
})
@Injectable()
export class SourcePrograms implements ProgramOwner {
  /** Requests whose console lines or whose end might still arrive. */
  private readonly unrecorded = growingLru<{ end: Trace | null; hasLines: boolean }>();

  constructor(
    @InjectRepository(Connection) private readonly connectionRepository: Repository<Connection>,
    private readonly sourceCompiler: SourceCompiler,
    private readonly connectionCallsService: ConnectionCallsService,
    private readonly accountLimitsService: AccountLimitsService,
  ) {}

  async withProgram<T>(ref: ProgramRef, use: (program: Program) => Promise<T>): Promise<T> {
    const row = await this.connectionRepository.findOne({
      where: { id: ref.id },
      select: { id: true, namespaceId: true, source: true },
    });
    if (!row?.source) throw new ProgramStartError('The connection was deleted.');
    try {
      const file = await this.sourceCompiler.compiledFile(row.source, row.namespaceId);
      return await use({ ref, file, configSchema: null, ...NO_VALUES });
    } catch (error) {
      // A compiled module can fail later if a package that is bundled into it has changed.
      if (error instanceof InvalidSourceError) throw new ProgramStartError(error.message, error);
      throw error;
    }
  }

  valuesOf(): Promise<ProgramValues> {
    return Promise.resolve(NO_VALUES);
  }

  quotaOf({ id }: ProgramRef): Promise<ProgramQuota | null> {
    return this.accountLimitsService.programQuota({ connectionId: id });
  }

  namesOf({ id }: ProgramRef): Promise<LogNames> {
    return LogNamesRepository.find(this.connectionRepository.manager, 'connection', id);
  }

  recordTrace(trace: Trace): void {
    const { ref, invocationId: id, lines, exceptions } = trace;
    if (lines.length + exceptions.length > 0)
      this.connectionCallsService.record({ id, connectionId: ref.id, lines, exceptions });
    // Requests without a call record, such as the opening of a session, are recorded only if the module logged lines.
    // Their end and their lines arrive in any order.
    const previous = this.unrecorded.get(id) ?? { end: null, hasLines: false };
    const end = trace.request ? trace : previous.end;
    const hasLines = previous.hasLines || lines.length + exceptions.length > 0;
    this.unrecorded.set(id, { end, hasLines });
    if (end?.request && hasLines && !(previous.end && previous.hasLines))
      this.connectionCallsService.record(toCall(end, end.request));
  }
}

function toCall(
  { ref, invocationId, outcome, wallMs = 0 }: Trace,
  request: NonNullable<Trace['request']>,
): ConnectionCall {
  return {
    id: invocationId,
    connectionId: ref.id,
    at: request.at,
    method: request.method,
    url: request.path.split('?')[0] ?? '',
    rpcMethod: request.rpcMethod,
    status: request.status,
    outcome: outcome === undefined || outcome === 'ok' ? 'ok' : outcome === 'canceled' ? 'canceled' : 'exception',
    timing: { guardMs: null, queueMs: null, connectMs: null, firstByteMs: null, totalMs: wallMs },
    lines: [],
    exceptions: [],
  };
}
