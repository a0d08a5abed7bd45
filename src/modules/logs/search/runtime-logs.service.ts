import { Injectable } from '@nestjs/common';
import type { ServerRef } from '../../servers/server.types.js';
import { InvocationSearch } from './invocation-search.js';
import type { Invocation, InvocationPiece } from '../invocation.types.js';
import { InvocationsService } from '../ingest/invocations.service.js';
import { LogsBusyError } from '../logs.errors.js';
import type { ExportAnswer } from '../otlp/otlp-messages.js';
import { groupRecords } from '../otlp/otlp-invocations.js';
import { recordsOf } from '../otlp/otlp-records.js';
import { TraceStartCache } from '../otlp/trace-start-cache.js';
import type { AcceptedInvocationsDto, RuntimeLogDto, RuntimeLogQueryDto } from './runtime-log.dto.js';
import { toInvocationDto } from './runtime-log.mapper.js';
import { readIngestRequest } from '../ingest/ingest-request.js';

/** The runtime logs of servers, for their owners, and for servers that run elsewhere. */
@Injectable()
export class RuntimeLogsService {
  private readonly beginnings = new TraceStartCache();

  constructor(
    private readonly search: InvocationSearch,
    private readonly invocations: InvocationsService,
  ) {}

  /** The newest matching invocations. @throws SearchTooLongError, NoSlotError */
  async list(server: ServerRef, { limit = 20, ...query }: RuntimeLogQueryDto): Promise<RuntimeLogDto> {
    const { invocations, ...totals } = await this.search.find(server.id, query, limit);
    return { invocations: invocations.map(toInvocationDto), ...totals };
  }

  /**
   * Takes records of a server that runs elsewhere, all or none of a body.
   *
   * @throws InvalidInputError, LogsBusyError when there is no room for all of them: they may be sent again
   */
  take(server: ServerRef, body: unknown): AcceptedInvocationsDto {
    const sent = readIngestRequest(server.id, body, new Date());
    this.handIn(server, sent);
    return { accepted: sent.length, ids: sent.map(({ id }) => id) };
  }

  /**
   * Takes the records of an OTLP export, but for those that cannot be kept.
   *
   * @param request an ExportLogsServiceRequest, decoded
   * @throws InvalidInputError, LogsBusyError when there is no room for all the others: it may be sent again
   */
  takeExport(server: ServerRef, request: unknown): ExportAnswer {
    const { invocations, rejected, reason } = groupRecords(server.id, recordsOf(request), new Date(), (traceId, at) =>
      this.beginnings.of(server.id, traceId, at),
    );
    // A trace may come in several exports: what it wrote is added, and the first that describes it decides.
    const records = invocations.map((invocation) => ({ ...invocation, lines: [], exceptions: [] }));
    this.handIn(
      server,
      records,
      invocations.map(({ id, serverId, lines, exceptions }) => ({ id, serverId, lines, exceptions })),
    );
    return rejected === 0 ? {} : { partialSuccess: { rejectedLogRecords: rejected, errorMessage: reason } };
  }

  private handIn({ id }: ServerRef, records: Invocation[], pieces: InvocationPiece[] = []): void {
    if (!this.invocations.hasRoomFor(id, [...records, ...pieces])) throw new LogsBusyError();
    for (const record of records) this.invocations.record(record);
    for (const piece of pieces) this.invocations.append(piece);
  }
}
