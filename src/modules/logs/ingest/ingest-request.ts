import { timeOfUuidV7, uuidV7 } from '../../../platform/database/uuid-v7.js';
import { invocationOutcomes, type Invocation } from '../invocation.types.js';
import { bareUrl, derivedId, INGEST_MAX, isUsableId, isVersion7, timeFault } from './ingest-limits.js';
import { IngestRecord } from './ingest-record.js';
import { LINES_MAX } from './invocation-bounds.js';

/** A day. A longer duration is in a wrong unit. */
const DURATION_MS_MAX = 86_400_000;

/**
 * Reads the invocations of a JSON body: an array or `{invocations}` of objects as `GET` answers them. All members are
 * optional: the default time is now, the default outcome follows from status and exceptions. A record with an id that is
 * sent again is stored once.
 *
 * @throws InvalidInputError with the path of the invalid member
 */
export function readIngestRequest(serverId: string, body: unknown, now: Date): Invocation[] {
  const list = Array.isArray(body) ? body : (body as { invocations?: unknown } | null | undefined)?.invocations;
  return IngestRecord.listOf(list, 'invocations', INGEST_MAX).map((record) => toInvocation(serverId, record, now));
}

function toInvocation(serverId: string, record: IngestRecord, now: Date): Invocation {
  const at = timeOf(record, now);
  const [request, response, duration] = [
    record.object('request'),
    record.object('response'),
    record.object('duration'),
  ];
  const exceptions = record.list('exceptions', LINES_MAX).map((one) => ({
    at: (one.time('timestamp') ?? at).getTime(),
    name: one.text('name') ?? 'Error',
    message: one.text('message') ?? '',
  }));
  const lines = record.list('logs', LINES_MAX).map((one) => ({
    at: (one.time('timestamp') ?? at).getTime(),
    level: one.text('level') ?? 'info',
    message: one.text('message') ?? one.refuse('message', 'is missing'),
  }));
  const status = response.number('status', 100, 599);
  return {
    id: idOf(serverId, record, at),
    serverId,
    releaseId: null,
    at: at.getTime(),
    method: request.text('method') ?? 'POST',
    url: bareUrl(request.text('url') ?? '/'),
    rpcMethod: record.text('rpcMethod'),
    toolName: record.text('tool'),
    status: status ?? (exceptions.length > 0 ? 500 : 200),
    outcome: response.oneOf('outcome', invocationOutcomes) ?? outcomeOf(status, exceptions.length > 0),
    cpuMs: duration.number('cpuMs', 0, DURATION_MS_MAX) ?? 0,
    wallMs: duration.number('wallMs', 0, DURATION_MS_MAX) ?? 0,
    lines,
    exceptions,
  };
}

/** The time that was sent, or that an id of version 7 contains. */
function timeOf(record: IngestRecord, now: Date): Date {
  const id = record.uuid('id');
  const at = record.time('timestamp') ?? (id !== null && isVersion7(id) ? timeOfUuidV7(id) : now);
  const fault = timeFault(at, now);
  return fault === null ? at : record.refuse('timestamp', fault);
}

/** An id of version 7 is used unchanged; from another id and the time that was sent one is derived. */
function idOf(serverId: string, record: IngestRecord, at: Date): string {
  const sent = record.uuid('id');
  if (sent === null) return uuidV7(at.getTime());
  if (isUsableId(sent, at)) return sent;
  if (record.text('timestamp') === null) {
    record.refuse('timestamp', 'is missing: only an id of version 7 tells when the request came');
  }
  return derivedId(serverId, sent, at);
}

/** The outcome of a request without one. */
export function outcomeOf(status: number | null, hasThrown: boolean): 'ok' | 'exception' | 'unknown' {
  if (hasThrown || (status ?? 0) >= 500) return 'exception';
  return status === null ? 'unknown' : 'ok';
}
