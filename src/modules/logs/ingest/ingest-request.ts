import { timeOfUuidV7, uuidV7 } from '../../../platform/database/uuid-v7.js';
import { bareUrl, SENT_LINES_MAX, INGEST_MAX, timeFault } from './ingest-limits.js';
import { derivedId, isKeepable, isVersion7 } from './ingest-id.js';
import { invocationOutcomes, type Invocation } from '../invocation.types.js';
import { IngestRecord } from './ingest-record.js';

/** A day: longer is a unit that was mixed up. */
const DURATION_MS_MAX = 86_400_000;

/**
 * The invocations of a JSON body, an array or `{invocations}`, each as an answer shows it. Nothing is required: a missing
 * time is now, a missing outcome follows from status and exceptions. Long texts are cut. Records with an id are known
 * again when they are sent again.
 *
 * @throws InvalidInputError that names the place of what is wrong
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
  const exceptions = record.list('exceptions', SENT_LINES_MAX).map((one) => ({
    at: one.time('timestamp') ?? at,
    name: one.text('name') ?? 'Error',
    message: one.text('message') ?? '',
  }));
  const lines = record.list('logs', SENT_LINES_MAX).map((one) => ({
    at: one.time('timestamp') ?? at,
    level: one.text('level') ?? 'info',
    message: one.text('message') ?? one.refuse('message', 'is missing'),
  }));
  const status = response.number('status', 100, 599);
  return {
    id: idOf(serverId, record, at),
    serverId,
    releaseId: null,
    at,
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

/** The moment that was sent, or that an id of version 7 tells. */
function timeOf(record: IngestRecord, now: Date): Date {
  const id = record.uuid('id');
  const at = record.time('timestamp') ?? (id !== null && isVersion7(id) ? timeOfUuidV7(id) : now);
  const fault = timeFault(at, now);
  return fault === null ? at : record.refuse('timestamp', fault);
}

/** An id of version 7 stays as it is; any other is told apart by the moment, so it needs one that was sent. */
function idOf(serverId: string, record: IngestRecord, at: Date): string {
  const given = record.uuid('id');
  if (given === null) return uuidV7(at.getTime());
  if (isKeepable(given, at)) return given;
  if (record.text('timestamp') === null) {
    record.refuse('timestamp', 'is missing: only an id of version 7 tells when the request came');
  }
  return derivedId(serverId, given, at);
}

/** How a request ended that does not say so. */
export function outcomeOf(status: number | null, hasThrown: boolean): 'ok' | 'exception' | 'unknown' {
  if (hasThrown || (status ?? 0) >= 500) return 'exception';
  return status === null ? 'unknown' : 'ok';
}
