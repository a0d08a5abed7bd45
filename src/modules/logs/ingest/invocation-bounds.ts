import { toStorableText } from '../../../platform/database/storable.js';
import { timeOfUuidV7 } from '../../../platform/database/uuid-v7.js';
import { redact } from '../../../platform/telemetry/logger.js';
import {
  answeredErrors,
  type ConnectionCall,
  type Invocation,
  type LogException,
  type LogLine,
} from '../invocation.types.js';

/** Records in a request, and lines and exceptions of one invocation; the earliest are stored. */
export const ENTRIES_MAX = 1_000;

/** Maximum number of characters of a string. Payloads are cut where they are created. */
const TEXT_CHARS_MAX = 8_192;

/** Maximum total characters of the messages of one invocation; hosted code has a lower limit. */
const MESSAGES_CHARS_MAX = 1024 * 1024;

/** Characters read beyond the limit before redaction, to recognize a credential across the cut. */
const CREDENTIAL_CHARS_MAX = 1_400;

/**
 * Merges parts of one invocation into the stored form: limited in size, credentials redacted, only strings that
 * Postgres can store.
 */
export function mergeInvocation(parts: Invocation[]): Invocation {
  const { record, id, lines, exceptions, leftOut } = mergeParts(parts);
  const lastOf = <K extends 'outcome' | 'cpuMs'>(name: K) =>
    parts.findLast((part) => part.method == null && part[name] !== undefined)?.[name];
  const [recorded, added] = [record?.outcome, lastOf('outcome')];
  return {
    id,
    serverId: parts[0].serverId,
    releaseId: record?.releaseId,
    ...fieldsOf(record, id),
    // The outcome in a later part takes precedence, but its `ok` does not hide an error that the server returned.
    outcome: added === 'ok' && recorded && answeredErrors.includes(recorded) ? recorded : (added ?? recorded),
    cpuMs: finite(lastOf('cpuMs') ?? record?.cpuMs),
    wallMs: finite(record?.wallMs),
    payload: record?.payload && {
      arguments: optional(record.payload.arguments, Infinity),
      result: optional(record.payload.result, Infinity),
    },
    lines,
    exceptions,
    leftOut,
  };
}

interface MergedParts<Part> {
  id: string;
  record: Part | undefined;
  lines: LogLine[];
  exceptions: LogException[];
  leftOut: number;
}

/** Merges parts of a connection's view like {@link mergeInvocation}. */
export function mergeCall(parts: ConnectionCall[]): ConnectionCall {
  const { record, id, lines, exceptions } = mergeParts(parts);
  const { connectionId } = parts[0];
  if (!record) return { id, connectionId, lines, exceptions };
  const { outcome, timing, leftOut } = record;
  return { id, connectionId, ...fieldsOf(record, id), outcome, timing, lines, exceptions, leftOut };
}

/** Merges parts. Only the first part with `method` is used, so a record that is sent again has no effect. */
function mergeParts<Part extends Invocation | ConnectionCall>(all: Part[]): MergedParts<Part> {
  const [first] = all;
  const { id } = first;
  // Most invocations are one part without entries.
  if (all.length === 1 && first.lines.length === 0 && first.exceptions.length === 0) {
    return { id, record: first.method == null ? undefined : first, lines: [], exceptions: [], leftOut: 0 };
  }
  const record = all.find(({ method }) => method != null);
  const parts = all.filter((part) => part === record || part.method == null);
  const madeAt = timeOfUuidV7(id).getTime();
  const lines = earliest(
    parts.flatMap((part) => part.lines.map((line) => ({ ...line, at: timeOr(line.at, madeAt) }))),
    ({ at, level, message }: LogLine) => ({ at, level: text(level), message: text(message) }),
  );
  const exceptions = earliest(
    parts.flatMap((part) => part.exceptions.map((exception) => ({ ...exception, at: timeOr(exception.at, madeAt) }))),
    ({ at, name, message }: LogException) => ({ at, name: text(name), message: text(message) }),
  );
  return {
    id,
    record,
    lines: lines.stored,
    exceptions: exceptions.stored,
    leftOut: lines.leftOut + exceptions.leftOut,
  };
}

function fieldsOf(record: Invocation | ConnectionCall | undefined, id: string) {
  if (!record) return {};
  return {
    at: timeOr(record.at, timeOfUuidV7(id).getTime()),
    method: optional(record.method),
    url: optional(record.url),
    rpcMethod: optional(record.rpcMethod),
    toolName: optional(record.toolName),
    status: Math.trunc(finite(record.status) ?? 0),
    caller: record.caller && { ...record.caller, client: optional(record.caller.client) },
  };
}

/** Returns the earliest entries within the limits on their number and total length. */
function earliest<Entry extends LogLine | LogException>(entries: Entry[], bounded: (entry: Entry) => Entry) {
  const stored: Entry[] = [];
  let chars = 0;
  for (const entry of entries.toSorted((a, b) => a.at - b.at)) {
    const boundedEntry = bounded(entry);
    chars += boundedEntry.message.length;
    if (stored.length === ENTRIES_MAX || chars > MESSAGES_CHARS_MAX) break;
    stored.push(boundedEntry);
  }
  return { stored, leftOut: entries.length - stored.length };
}

function optional(value: string | null | undefined, charsMax = TEXT_CHARS_MAX): string | null {
  return value == null ? null : text(value, charsMax);
}

/**
 * Short strings without credentials, stored unchanged: most rows repeat the URLs, methods, tools and clients of others,
 * and searching one for credentials takes 2 µs.
 */
const unchanged = new Set<string>();
const UNCHANGED_MAX = 1_000;
const UNCHANGED_CHARS_MAX = 256;

function text(value: string, charsMax = TEXT_CHARS_MAX): string {
  if (unchanged.has(value)) return value;
  const stored = storableTextOf(value, charsMax);
  if (stored === value && value.length <= UNCHANGED_CHARS_MAX) {
    if (unchanged.size === UNCHANGED_MAX) unchanged.clear();
    unchanged.add(value);
  }
  return stored;
}

function storableTextOf(value: string, charsMax: number): string {
  const isWhole = value.length <= charsMax + CREDENTIAL_CHARS_MAX;
  const read = redact(isWhole ? value : value.slice(0, charsMax + CREDENTIAL_CHARS_MAX));
  return toStorableText(read.slice(0, isWhole ? charsMax : Math.min(charsMax, read.length - CREDENTIAL_CHARS_MAX)));
}

function timeOr(at: number | null | undefined, otherwise: number): number {
  return typeof at === 'number' && !Number.isNaN(new Date(at).getTime()) ? at : otherwise;
}

/** Limits a value to the range of `real` and `integer`. */
function finite(value: number | null | undefined): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? Math.max(-2e9, Math.min(2e9, value)) : null;
}
