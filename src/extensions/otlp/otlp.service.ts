import { Injectable } from '@nestjs/common';
import { Logs, type ServerRef } from '../../extension.js';
import { groupRecords, TraceStartCache } from './otlp-invocations.js';
import { recordsOf, type ExportAnswer } from './otlp-records.js';

@Injectable()
export class OtlpService {
  private readonly traceStarts = new TraceStartCache();

  constructor(private readonly logs: Logs) {}

  /**
   * @param request an ExportLogsServiceRequest, decoded
   * @throws InvalidInputError; QuotaExceededError; UnavailableError if too many records wait to be written
   */
  async takeExport(server: ServerRef, request: unknown): Promise<ExportAnswer> {
    const records = recordsOf(request);
    const { invocations, rejected, reason } = await groupRecords(server.id, records, new Date(), this.traceStarts);
    // The request of a trace has the fields of its first export; lines of later exports are added.
    const parts = invocations.flatMap((invocation) => {
      const { id, lines, exceptions } = invocation;
      return [
        { ...invocation, lines: [], exceptions: [] },
        { id, lines, exceptions },
      ];
    });
    await this.logs.ingest(server, parts);
    return rejected === 0 ? {} : { partialSuccess: { rejectedLogRecords: rejected, errorMessage: reason } };
  }
}
