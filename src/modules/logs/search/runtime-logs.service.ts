import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { AccountLimitsService } from '../../auth/account-limits.service.js';
import type { ServerRef } from '../../servers/server.types.js';
import { InvocationSearchRepository, type FoundInvocation } from './invocation-search.repository.js';
import { toCallerDto } from '../caller.types.js';
import type { IngestedInvocation } from '../invocation.types.js';
import { LogBatchesService } from '../batches/log-batches.service.js';
import { InvocationsService } from '../ingest/invocations.service.js';
import type { AcceptedInvocationsDto, RuntimeLogDto, RuntimeLogQueryDto, InvocationDto } from './runtime-log.dto.js';
import { bareUrl } from '../ingest/ingest-limits.js';
import { readIngestRequest } from '../ingest/ingest-request.js';
import { timesOf } from '../../../platform/http/time-text.js';

@Injectable()
export class RuntimeLogsService {
  constructor(
    private readonly invocationSearchRepository: InvocationSearchRepository,
    private readonly invocationsService: InvocationsService,
    private readonly logBatchesService: LogBatchesService,
    private readonly accountLimitsService: AccountLimitsService,
  ) {}

  /** Lists invocations, including all that this process has recorded. @throws SearchTooLongError, NoSlotError */
  async list(server: ServerRef, { limit = 20, ...query }: RuntimeLogQueryDto): Promise<RuntimeLogDto> {
    await this.invocationsService.settle();
    const { invocations, ...totals } = await this.invocationSearchRepository.find(server.id, query, limit);
    return { invocations: invocations.map(toInvocationDto), ...totals };
  }

  /**
   * Accepts all invocations or none.
   *
   * @throws InvalidInputError; QuotaExceededError; UnavailableError if too many records wait to be written
   */
  async acceptInvocations(server: ServerRef, body: unknown): Promise<AcceptedInvocationsDto> {
    const sent = readIngestRequest(server.id, body, new Date());
    await this.ingest(server, sent);
    return { accepted: sent.length, ids: sent.map(({ id }) => id) };
  }

  /**
   * Stores all invocations or none, and URLs without their queries.
   *
   * @param tx stores them in this transaction
   * @throws QuotaExceededError; UnavailableError if too many records wait to be written
   */
  async ingest({ id, namespaceId }: ServerRef, invocations: IngestedInvocation[], tx?: EntityManager): Promise<void> {
    await this.accountLimitsService.require({ namespaceId }, { logBytesPerDay: 0 });
    const server = { serverId: id, releaseId: null };
    const parts = invocations.map((part) => ({ ...part, ...server, url: part.url && bareUrl(part.url) }));
    await this.logBatchesService.add(id, parts, tx);
  }
}

/**
 * Lists every field of the response. While the main part of an invocation has not arrived, its fields have empty
 * values.
 */
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
