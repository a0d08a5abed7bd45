import { createHash } from 'node:crypto';
import type { Invocation, InvocationException, InvocationLine } from '../invocation.types.js';
import { bareUrl, SENT_LINES_MAX, INGEST_MAX, timeFault } from '../ingest/ingest-limits.js';
import { outcomeOf } from '../ingest/ingest-request.js';
import { derivedId } from '../ingest/ingest-id.js';
import type { OtlpRecord } from './otlp-records.js';

/** What became of the records of one export. */
export interface GroupedRecords {
  invocations: Invocation[];
  /** Records that were left out. */
  rejected: number;
  /** Why the first of them was. */
  reason: string;
}

/** What the records of one trace say of their request. */
interface Trace {
  times: number[];
  attributes: Map<string, string>;
  lines: InvocationLine[];
  exceptions: InvocationException[];
}

/** When a trace began, as far as it is known from earlier exports; `at` is when it began at the latest. */
export type BeginningOf = (traceId: string, at: Date) => Date;

/** The key of what belongs to no trace. */
const LOOSE = '';

/**
 * The invocations that log records tell of: one for each trace, and one for all records outside of traces. The first
 * record that names an attribute of the request decides it. A request that is not described is a `POST` of unknown
 * outcome.
 */
export function groupRecords(
  serverId: string,
  records: Iterable<OtlpRecord>,
  now: Date,
  beginningOf: BeginningOf,
): GroupedRecords {
  const traces = new Map<string, Trace>();
  let rejected = 0;
  let reason = '';
  for (const record of records) {
    const fault = add(traces, record, now);
    if (fault === null) continue;
    reason ||= fault;
    rejected += 1;
  }
  const invocations = [...traces].map(([traceId, trace]) => {
    const first = new Date(Math.min(...trace.times));
    const id =
      traceId === LOOSE
        ? derivedId(serverId, contentOf(trace), first)
        : derivedId(serverId, traceId, beginningOf(traceId, first));
    return toInvocation(id, serverId, trace, first);
  });
  return { invocations, rejected, reason };
}

/** @returns why the record is left out; null when it is in */
function add(traces: Map<string, Trace>, record: OtlpRecord, now: Date): string | null {
  const at = record.at ?? now;
  const late = timeFault(at, now);
  if (late !== null) return `The time of a record ${late}`;
  const key = record.traceId ?? LOOSE;
  const trace: Trace = traces.get(key) ?? { times: [], attributes: new Map(), lines: [], exceptions: [] };
  if (!traces.has(key) && traces.size >= INGEST_MAX) return `A request may hold ${INGEST_MAX} traces`;
  if (trace.times.length >= SENT_LINES_MAX) return `A trace may have ${SENT_LINES_MAX} records in one request`;
  traces.set(key, trace);
  trace.times.push(at.getTime());
  for (const [name, value] of record.attributes) {
    if (isRead.has(name) && !trace.attributes.has(name)) trace.attributes.set(name, value);
  }
  const exception = exceptionOf(record, at);
  if (exception) trace.exceptions.push(exception);
  if (record.message !== '') {
    trace.lines.push({ at, level: record.level, message: record.message });
  }
  return null;
}

/** The attributes that say what a request was, by OpenTelemetry's semantic conventions. */
const isRead: ReadonlySet<string> = new Set([
  'http.request.method',
  'http.response.status_code',
  'url.full',
  'url.path',
  'mcp.method.name',
  'gen_ai.tool.name',
]);

function exceptionOf({ attributes, message }: OtlpRecord, at: Date): InvocationException | null {
  const name = attributes.get('exception.type');
  const text = attributes.get('exception.message');
  if (name === undefined && text === undefined) return null;
  return { at, name: name ?? 'Error', message: text ?? message };
}

function toInvocation(
  id: string,
  serverId: string,
  { times, attributes, lines, exceptions }: Trace,
  first: Date,
): Invocation {
  const known = (name: string) => attributes.get(name) ?? null;
  const given = Number(attributes.get('http.response.status_code'));
  const status = Number.isInteger(given) && given >= 100 && given <= 599 ? given : null;
  return {
    id,
    serverId,
    releaseId: null,
    at: first,
    method: known('http.request.method') ?? 'POST',
    url: bareUrl(attributes.get('url.full') ?? attributes.get('url.path') ?? '/'),
    rpcMethod: known('mcp.method.name'),
    toolName: known('gen_ai.tool.name'),
    status: status ?? (exceptions.length > 0 ? 500 : 200),
    outcome: outcomeOf(status, exceptions.length > 0),
    cpuMs: 0,
    wallMs: Math.max(...times) - first.getTime(),
    lines,
    exceptions,
  };
}

/** Stands for records that no trace names: an export that is repeated has the same. */
function contentOf({ lines, exceptions }: Trace): string {
  return createHash('sha256')
    .update(JSON.stringify([lines, exceptions]))
    .digest('hex');
}
