import { Injectable } from '@nestjs/common';
import { AccountLimitsService } from '../../auth/account-limits.service.js';
import type { ServerRef } from '../../servers/server.types.js';
import { InvocationSearchRepository, type FoundInvocation } from './invocation-search.repository.js';
import { toCallerDto } from '../caller.types.js';
import type { Invocation } from '../invocation.types.js';
import { LogBatchesService } from '../batches/log-batches.service.js';
import { InvocationsService } from '../ingest/invocations.service.js';
import { recordsOf, type ExportAnswer } from '../otlp/otlp-records.js';
import { groupRecords, TraceStartCache } from '../otlp/otlp-invocations.js';
import type { AcceptedInvocationsDto, RuntimeLogDto, RuntimeLogQueryDto, InvocationDto } from './runtime-log.dto.js';
import { readIngestRequest } from '../ingest/ingest-request.js';
import { timesOf } from '../../../platform/http/time-text.js';

/** The runtime logs of servers: reads them, and accepts what servers that run elsewhere send. */
@Injectable()
export class RuntimeLogsService {
  private readonly traceStarts = new TraceStartCache();

  constructor(
    private readonly invocationSearchRepository: InvocationSearchRepository,
    private readonly invocationsService: InvocationsService,
    private readonly logBatchesService: LogBatchesService,
    private readonly accountLimitsService: AccountLimitsService,
  ) {}

  /** The newest matching invocations, with all that this process recorded before. @throws SearchTooLongError, NoSlotError */
  async list(server: ServerRef, { limit = 20, ...query }: RuntimeLogQueryDto): Promise<RuntimeLogDto> {
    await this.invocationsService.settle();
    const { invocations, ...totals } = await this.invocationSearchRepository.find(server.id, query, limit);
    return { invocations: invocations.map(toInvocationDto), ...totals };
  }

  /**
   * Accepts invocations of a server that runs elsewhere, all of a body or none.
   *
   * @throws InvalidInputError; QuotaExceededError; UnavailableError if too many records wait to be written
   */
  async acceptInvocations(server: ServerRef, body: unknown): Promise<AcceptedInvocationsDto> {
    const sent = readIngestRequest(server.id, body, new Date());
    await this.record(server, sent);
    return { accepted: sent.length, ids: sent.map(({ id }) => id) };
  }

  /**
   * Accepts an OTLP export, but for the records that cannot be stored.
   *
   * @param request an ExportLogsServiceRequest, decoded
   * @throws InvalidInputError; QuotaExceededError; UnavailableError if too many records wait to be written
   */
  async takeExport(server: ServerRef, request: unknown): Promise<ExportAnswer> {
    const records = recordsOf(request);
    const { invocations, rejected, reason } = await groupRecords(server.id, records, new Date(), this.traceStarts);
    // The fields of a trace's request are those of its first export; lines of later exports are added.
    const parts = invocations.flatMap((invocation) => {
      const { id, serverId, lines, exceptions } = invocation;
      return [
        { ...invocation, lines: [], exceptions: [] },
        { id, serverId, lines, exceptions },
      ];
    });
    await this.record(server, parts);
    return rejected === 0 ? {} : { partialSuccess: { rejectedLogRecords: rejected, errorMessage: reason } };
  }

  private async record({ id, namespaceId }: ServerRef, parts: Invocation[]): Promise<void> {
    await this.accountLimitsService.require({ namespaceId }, { logBytesPerDay: 0 });
    await this.logBatchesService.add(id, parts);
  }
}

/** Lists every field the answer may contain. An invocation whose main part has not come yet is shown as far as known. */
export function toInvocationDto(invocation: FoundInvocation): InvocationDto {
  const { payload } = invocation;
  return {
    id: invocation.id,
    ...timesOf(invocation.at),
    request: { method: invocation.method ?? '', url: invocation.url ?? '' },
    response: { status: invocation.status ?? 0, outcome: invocation.outcome ?? 'unknown' },
    duration: { cpuMs: Math.round(invocation.cpuMs ?? 0), wallMs: Math.round(invocation.wallMs ?? 0) },
    logs: invocation.lines.map(({ at, level, message }) => ({ ...timesOf(at), level, message })),
    exceptions: invocation.exceptions.map(({ at, name, message }) => ({ ...timesOf(at), name, message })),
    rpcMethod: invocation.rpcMethod ?? null,
    tool: invocation.toolName ?? null,
    caller: toCallerDto(invocation.caller),
    releaseId: invocation.releaseId ?? null,
    leftOut: invocation.leftOut ?? 0,
    ...(payload ? { payload: { arguments: payload.arguments, result: payload.result } } : {}),
  };
}
