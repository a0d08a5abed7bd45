import { Injectable, type OnModuleInit } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { LRUCache } from 'lru-cache';
import { Repository } from 'typeorm';
import { ProgramStartError } from '../../../hosting/hosting.errors.js';
import type { Program, ProgramRef, ProgramValues, Trace } from '../../../hosting/hosting.types.js';
import { Programs, type ProgramOwner } from '../../../hosting/programs.js';
import { Connection } from '../core/connection.entity.js';
import { InvalidSourceError } from '../core/connections.errors.js';
import type { LoggedCall } from '../log/call-record.js';
import { LineRecorder } from '../log/line-recorder.js';
import { LogRecorder } from '../log/log-recorder.js';
import { SourceCompiler } from './source-compiler.js';

const UNRECORDED_MAX = 2_000;

/** Modules of connections have no secrets and no egress rules of their own. */
const NO_VALUES: ProgramValues = { secrets: {}, egressAllow: null };

/** The modules of connections as programs, in processes with the role `host`. */
@Injectable()
export class SourcePrograms implements ProgramOwner, OnModuleInit {
  /** Requests whose lines or whose end may still arrive. */
  private readonly unrecorded = new LRUCache<string, { end: Trace | null; hasLines: boolean }>({ max: UNRECORDED_MAX });

  constructor(
    @InjectRepository(Connection) private readonly connections: Repository<Connection>,
    private readonly compiler: SourceCompiler,
    private readonly programs: Programs,
    private readonly lines: LineRecorder,
    private readonly calls: LogRecorder,
  ) {}

  onModuleInit(): void {
    this.programs.register('source', this);
  }

  async withProgram<T>(ref: ProgramRef, use: (program: Program) => Promise<T>): Promise<T> {
    const row = await this.connections.findOne({
      where: { id: ref.id },
      select: { id: true, namespaceId: true, source: true },
    });
    if (!row?.source) throw new ProgramStartError('The connection was deleted.');
    try {
      return await this.compiler.withCompiled(row.source, row.namespaceId, (file) =>
        use({ ref, file, configSchema: null, ...NO_VALUES }),
      );
    } catch (error) {
      // A module that was compiled before can fail now if a package that is compiled into it has changed.
      if (error instanceof InvalidSourceError) throw new ProgramStartError(error.message, error);
      throw error;
    }
  }

  valuesOf(): Promise<ProgramValues> {
    return Promise.resolve(NO_VALUES);
  }

  traced(trace: Trace): void {
    const { ref, invocationId, lines, exceptions } = trace;
    const place = { connectionId: ref.id, invocationId };
    for (const { at, level, message } of lines) this.lines.record({ ...place, at, level, name: null, message });
    for (const { at, name, message } of exceptions) this.lines.record({ ...place, at, level: null, name, message });
    this.note(trace);
  }

  /**
   * Requests that no call record covers, such as the opening of a session, are recorded only if the module logged lines
   * during them. Their end and their lines arrive in any order.
   */
  private note(trace: Trace): void {
    const { invocationId, lines, exceptions } = trace;
    const known = this.unrecorded.get(invocationId) ?? { end: null, hasLines: false };
    const end = trace.request ? trace : known.end;
    const hasLines = known.hasLines || lines.length + exceptions.length > 0;
    this.unrecorded.set(invocationId, { end, hasLines });
    if (end?.request && hasLines && !(known.end && known.hasLines)) this.calls.record(toCall(end, end.request));
  }
}

function toCall({ ref, invocationId, outcome, wallMs = 0 }: Trace, request: NonNullable<Trace['request']>): LoggedCall {
  return {
    id: invocationId,
    connectionId: ref.id,
    at: request.at,
    method: request.method,
    url: request.path.split('?')[0] ?? '',
    rpcMethod: request.rpcMethod,
    toolName: null,
    status: request.status,
    outcome: outcome === undefined || outcome === 'ok' ? 'ok' : outcome === 'canceled' ? 'canceled' : 'exception',
    failureName: null,
    failureMessage: null,
    guardMs: null,
    queueMs: null,
    connectMs: null,
    firstByteMs: null,
    totalMs: wallMs,
  };
}
