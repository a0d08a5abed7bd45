import { timeOfUuidV7 } from '../../../platform/database/uuid-v7.js';
import { toStorableText } from '../../../platform/database/storable.js';
import { redact } from '../../../platform/telemetry/logger.js';
import type { PendingInvocation } from './invocation-buffer.js';
import { LINES_MAX, type InvocationRow } from '../store/invocation-row.js';
import type { Invocation, InvocationPiece } from '../invocation.types.js';

/** What is kept of texts that others wrote, in characters. */
const MESSAGE_CHARS_MAX = 8_192;
const NAME_CHARS_MAX = 200;
const URL_CHARS_MAX = 2_048;
const PAYLOAD_CHARS_MAX = 65_536;

/** Characters of messages one invocation keeps; hosted code is held to less. */
const MESSAGES_CHARS_MAX = 1024 * 1024;

/** So much is read beyond what is kept, since a credential that is cut in two is not known for one. */
const CREDENTIAL_CHARS_MAX = 1_400;

/** Beyond it a time is no time. */
const TIME_MAX = 8.64e15;

/** What is written of an invocation: its pieces merged, bounded, without credentials and in text that Postgres can hold. */
export function rowOf({ id, serverId, record, pieces }: PendingInvocation): InvocationRow {
  const madeAt = timeOfUuidV7(id).getTime();
  const parts = record ? [record, ...pieces] : pieces;
  const lines = bounded(
    parts.flatMap((part) => part.lines),
    madeAt,
  );
  const exceptions = bounded(
    parts.flatMap((part) => part.exceptions),
    madeAt,
  );
  return {
    id,
    serverId,
    ...recordOf(record, madeAt),
    outcome: lastOf(pieces, 'outcome') ?? record?.outcome ?? null,
    cpuMs: finite(lastOf(pieces, 'cpuMs') ?? record?.cpuMs),
    lines: lines.kept.map(({ entry, at, message }) => ({ at, level: text(entry.level, NAME_CHARS_MAX), message })),
    exceptions: exceptions.kept.map(({ entry, at, message }) => ({
      at,
      name: text(entry.name, NAME_CHARS_MAX),
      message,
    })),
    leftOut: lines.leftOut + exceptions.leftOut,
  };
}

function recordOf(record: Invocation | null, madeAt: number) {
  const optional = (value: string | null | undefined, max: number) => (value == null ? null : text(value, max));
  return {
    releaseId: record?.releaseId ?? null,
    at: record && timeOr(record.at, madeAt),
    method: optional(record?.method, NAME_CHARS_MAX),
    url: optional(record?.url, URL_CHARS_MAX),
    rpcMethod: optional(record?.rpcMethod, NAME_CHARS_MAX),
    toolName: optional(record?.toolName, NAME_CHARS_MAX),
    status: record && Math.trunc(finite(record.status) ?? 0),
    wallMs: finite(record?.wallMs),
    payload: record?.payload
      ? {
          arguments: optional(record.payload.arguments, PAYLOAD_CHARS_MAX),
          result: optional(record.payload.result, PAYLOAD_CHARS_MAX),
        }
      : null,
  };
}

function lastOf<K extends 'outcome' | 'cpuMs'>(pieces: InvocationPiece[], name: K): InvocationPiece[K] {
  return pieces.findLast((piece) => piece[name] !== undefined)?.[name];
}

/** The earliest, as many as are kept. */
function bounded<Entry extends { at: Date; message: string }>(entries: Entry[], madeAt: number) {
  const all = entries.map((entry) => ({ entry, at: timeOr(entry.at, madeAt) })).sort((a, b) => a.at - b.at);
  const kept: { entry: Entry; at: number; message: string }[] = [];
  let chars = 0;
  for (const { entry, at } of all) {
    const message = text(entry.message, MESSAGE_CHARS_MAX);
    chars += message.length;
    if (kept.length === LINES_MAX || chars > MESSAGES_CHARS_MAX) break;
    kept.push({ entry, at, message });
  }
  return { kept, leftOut: all.length - kept.length };
}

function text(value: string, charsMax: number): string {
  const isWhole = value.length <= charsMax + CREDENTIAL_CHARS_MAX;
  const read = redact(isWhole ? value : value.slice(0, charsMax + CREDENTIAL_CHARS_MAX));
  return toStorableText(read.slice(0, isWhole ? charsMax : Math.min(charsMax, read.length - CREDENTIAL_CHARS_MAX)));
}

function timeOr(at: Date, otherwise: number): number {
  const time = at.getTime();
  return Math.abs(time) <= TIME_MAX ? time : otherwise;
}

/** Also not beyond what a `real` or an `integer` holds. */
function finite(value: number | undefined): number | null {
  return value !== undefined && Number.isFinite(value) ? Math.max(-2e9, Math.min(2e9, value)) : null;
}
