import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import {
  type IngestedInvocation,
  invocationId,
  type LogException,
  type LogLine,
  timeProblem,
} from '../../extension.js';
import type { OtlpRecord } from './otlp-records.js';

export interface GroupedRecords {
  invocations: IngestedInvocation[];
  rejected: number;
  reason: string;
}

interface Trace {
  times: number[];
  attributes: Map<string, string>;
  lines: LogLine[];
  exceptions: LogException[];
}

const ENTRIES_MAX = 1_000;

const TRACES_MAX = 50_000;

/** Lifetime of an entry after the last record of its trace. */
const LIFETIME_MS = 15 * 60_000;

/**
 * Caches when traces started: their records can arrive in several exports, and the id of an invocation contains its
 * time. Records of a trace that reach another process, or arrive after the entry expired, become a separate invocation;
 * exporters keep their connection, and send most traces in one export.
 */
export class TraceStartCache {
  private readonly starts = new LRUCache<string, Date>({
    maxSize: TRACES_MAX,
    sizeCalculation: () => 1,
    ttl: LIFETIME_MS,
  });

  /** Returns the start of a server's trace: `at` of its first call. */
  startOf(serverId: string, traceId: string, at: Date): Date {
    const key = `${serverId} ${traceId}`;
    const start = this.starts.get(key) ?? at;
    this.starts.set(key, start);
    return start;
  }
}

/** Key of records without a trace. */
const NO_TRACE = '';

const RECORDS_PER_TURN = 5_000;

/**
 * Groups log records into invocations: one per trace, and one for all records without a trace. A request without
 * attributes becomes a `POST` of unknown outcome.
 */
export async function groupRecords(
  serverId: string,
  records: Iterable<OtlpRecord>,
  now: Date,
  starts: TraceStartCache,
): Promise<GroupedRecords> {
  const traces = new Map<string, Trace>();
  let rejected = 0;
  let reason = '';
  let count = 0;
  for (const record of records) {
    count += 1;
    if (count % RECORDS_PER_TURN === 0) await nextTurn();
    const fault = add(traces, record, now);
    if (fault === null) continue;
    reason ||= fault;
    rejected += 1;
  }
  const invocations = [...traces].map(([traceId, trace]) => {
    const first = new Date(Math.min(...trace.times));
    const id =
      traceId === NO_TRACE
        ? // The id depends on the content, so that a repeated export has the same id.
          invocationId(serverId, digestOf([trace.lines, trace.exceptions]), first)
        : invocationId(serverId, traceId, starts.startOf(serverId, traceId, first));
    return toInvocation(id, trace, first);
  });
  return { invocations, rejected, reason };
}

const digestOf = (value: unknown) => createHash('sha256').update(JSON.stringify(value)).digest('hex');

/** @returns why the record is rejected; null if it was added */
function add(traces: Map<string, Trace>, record: OtlpRecord, now: Date): string | null {
  const at = record.at ?? now;
  const problem = timeProblem(at, now);
  if (problem !== null) return `The time of a record ${problem}`;
  const name = record.attributes.get('exception.type');
  const text = record.attributes.get('exception.message');
  const isEmpty = record.message === null && name === undefined && text === undefined;
  if (isEmpty && ![...record.attributes.keys()].some((key) => REQUEST_ATTRIBUTES.has(key))) {
    return 'A record must have a body, an eventName, or attributes of a request or an exception';
  }
  const traceId = record.traceId ?? NO_TRACE;
  const trace: Trace = traces.get(traceId) ?? { times: [], attributes: new Map(), lines: [], exceptions: [] };
  if (!traces.has(traceId) && traces.size >= ENTRIES_MAX) return `A request may hold ${ENTRIES_MAX} traces`;
  if (trace.times.length >= ENTRIES_MAX) return `A trace may have ${ENTRIES_MAX} records in one request`;
  traces.set(traceId, trace);
  trace.times.push(at.getTime());
  for (const [key, value] of record.attributes) {
    if (REQUEST_ATTRIBUTES.has(key) && !trace.attributes.has(key)) trace.attributes.set(key, value);
  }
  if (name !== undefined || text !== undefined) {
    trace.exceptions.push({ at: at.getTime(), name: name ?? 'Error', message: text ?? record.message ?? '' });
  }
  if (record.message !== null) {
    trace.lines.push({ at: at.getTime(), level: record.level, message: record.message });
  }
  return null;
}

const REQUEST_ATTRIBUTES: ReadonlySet<string> = new Set([
  'http.request.method',
  'http.response.status_code',
  'url.full',
  'url.path',
  'mcp.method.name',
  'gen_ai.tool.name',
]);

function toInvocation(id: string, { times, attributes, lines, exceptions }: Trace, first: Date): IngestedInvocation {
  const attributeOf = (name: string) => attributes.get(name) ?? null;
  const sent = Number(attributes.get('http.response.status_code'));
  const status = Number.isInteger(sent) && sent >= 100 && sent <= 599 ? sent : null;
  return {
    id,
    at: first.getTime(),
    method: attributeOf('http.request.method') ?? 'POST',
    url: attributes.get('url.full') ?? attributes.get('url.path') ?? '/',
    rpcMethod: attributeOf('mcp.method.name'),
    toolName: attributeOf('gen_ai.tool.name'),
    status: status ?? (exceptions.length > 0 ? 500 : 200),
    outcome: outcomeOf(status, exceptions.length > 0),
    cpuMs: 0,
    wallMs: Math.max(...times) - first.getTime(),
    lines,
    exceptions,
  };
}

function outcomeOf(status: number | null, hasThrown: boolean): 'ok' | 'exception' | 'unknown' {
  if (hasThrown || (status ?? 0) >= 500) return 'exception';
  return status === null ? 'unknown' : 'ok';
}
