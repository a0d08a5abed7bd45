import { Injectable, type OnModuleInit } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { ProgramStartError } from '../../../hosting/hosting.errors.js';
import type { Program, ProgramRef, Trace } from '../../../hosting/hosting.types.js';
import { Programs, type ProgramOwner } from '../../../hosting/programs.js';
import { Connection } from '../connection.entity.js';
import { InvalidSourceError } from '../connections.errors.js';
import { LineRecorder } from '../log/line-recorder.js';
import { LogRecorder } from '../log/log-recorder.js';
import { SourceCompiler } from './source-compiler.js';

/** The modules of connections, for those who run them. They have no secrets, and no configuration. */
@Injectable()
export class SourcePrograms implements ProgramOwner, OnModuleInit {
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
    if (!row?.source) throw new ProgramStartError('The connection is gone: it was deleted.');
    try {
      return await this.compiler.withCompiled(row.source, row.namespaceId, (file) =>
        use({ ref, file, secrets: {}, configSchema: null, egressAllow: null }),
      );
    } catch (error) {
      // What compiled once does so again, unless what is compiled into it is another by now.
      if (error instanceof InvalidSourceError) throw new ProgramStartError(error.message, error);
      throw error;
    }
  }

  traced({ ref, invocationId, request, outcome, wallMs = 0, lines, exceptions }: Trace): void {
    const place = { connectionId: ref.id, invocationId };
    for (const { at, level, message } of lines) this.lines.record({ ...place, at, level, name: null, message });
    for (const { at, name, message } of exceptions) this.lines.record({ ...place, at, level: null, name, message });
    if (!request || lines.length + exceptions.length === 0) return;
    this.calls.record({
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
    });
  }
}
