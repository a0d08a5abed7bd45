import { createRequire } from 'node:module';
import type protobuf from 'protobufjs/light.js';
import { InvalidInputError } from '../../extension.js';

const require = createRequire(import.meta.url);

const library = () => require('protobufjs/light.js') as typeof protobuf;

/**
 * The OTLP log fields that are read, with the field numbers of opentelemetry-proto (`logs.proto`, `common.proto`,
 * `logs_service.proto`); other fields are skipped.
 */
const FIELDS = {
  nested: {
    Request: { fields: { resourceLogs: { rule: 'repeated', type: 'ResourceLogs', id: 1 } } },
    ResourceLogs: { fields: { scopeLogs: { rule: 'repeated', type: 'ScopeLogs', id: 2 } } },
    ScopeLogs: { fields: { logRecords: { rule: 'repeated', type: 'LogRecord', id: 2 } } },
    LogRecord: {
      fields: {
        timeUnixNano: { type: 'fixed64', id: 1 },
        severityNumber: { type: 'int32', id: 2 },
        severityText: { type: 'string', id: 3 },
        body: { type: 'AnyValue', id: 5 },
        attributes: { rule: 'repeated', type: 'KeyValue', id: 6 },
        traceId: { type: 'bytes', id: 9 },
        observedTimeUnixNano: { type: 'fixed64', id: 11 },
        eventName: { type: 'string', id: 12 },
      },
    },
    AnyValue: {
      // A member with a default value is present, as in opentelemetry-proto.
      oneofs: {
        value: {
          oneof: ['stringValue', 'boolValue', 'intValue', 'doubleValue', 'arrayValue', 'kvlistValue', 'bytesValue'],
        },
      },
      fields: {
        stringValue: { type: 'string', id: 1 },
        boolValue: { type: 'bool', id: 2 },
        intValue: { type: 'int64', id: 3 },
        doubleValue: { type: 'double', id: 4 },
        arrayValue: { type: 'ArrayValue', id: 5 },
        kvlistValue: { type: 'KeyValueList', id: 6 },
        bytesValue: { type: 'bytes', id: 7 },
      },
    },
    ArrayValue: { fields: { values: { rule: 'repeated', type: 'AnyValue', id: 1 } } },
    KeyValueList: { fields: { values: { rule: 'repeated', type: 'KeyValue', id: 1 } } },
    KeyValue: { fields: { key: { type: 'string', id: 1 }, value: { type: 'AnyValue', id: 2 } } },
    Status: { fields: { code: { type: 'int32', id: 1 }, message: { type: 'string', id: 2 } } },
    Response: { fields: { partialSuccess: { type: 'PartialSuccess', id: 1 } } },
    PartialSuccess: {
      fields: { rejectedLogRecords: { type: 'int64', id: 1 }, errorMessage: { type: 'string', id: 2 } },
    },
  },
};

/**
 * Fields of an export in protobuf, including those of nested messages. An export of 1 MB with attributes of 25 bytes has 160,000;
 * one of empty messages would have 500,000.
 */
const FIELDS_MAX = 200_000;

let types: Record<string, protobuf.Type> | undefined;

export interface ExportAnswer {
  partialSuccess?: { rejectedLogRecords: number; errorMessage: string };
}

export interface ExportStatus {
  code: number;
  message: string;
}

export interface OtlpRecord {
  /** `timeUnixNano`, or else `observedTimeUnixNano`; null without both. */
  at: Date | null;
  /** `debug`, `info`, `warn` or `error`. */
  level: string;
  /** The body as a string, JSON if it is structured; without a body the name of the event; null without both. */
  message: string | null;
  /** 32 lower-case hex digits; null without a trace. */
  traceId: string | null;
  /** Attributes whose values are strings, numbers or booleans. */
  attributes: Map<string, string>;
}

type Members = Record<string, unknown>;
type Plain = string | number | bigint | boolean | Plain[] | { [key: string]: Plain } | null;

/** Maximum nesting of a structured value; deeper parts are not read. */
const DEPTH_MAX = 20;

/**
 * Yields the log records of a request, and skips members of an unexpected form.
 *
 * @throws InvalidInputError if it is not an ExportLogsServiceRequest
 */
export function* recordsOf(request: unknown): Generator<OtlpRecord> {
  if (!isMembers(request) || Array.isArray(request)) throw notARequest();
  for (const resource of requiredList(request, 'resourceLogs')) {
    for (const scope of requiredList(resource, 'scopeLogs')) {
      for (const record of requiredList(scope, 'logRecords')) yield toRecord(record);
    }
  }
}

/** @throws InvalidInputError if it is not a list of objects */
function requiredList(value: Members, name: string): Members[] {
  const list = getOwn(value, name) ?? [];
  if (Array.isArray(list) && list.every((item) => isMembers(item) && !Array.isArray(item))) return list as Members[];
  throw notARequest();
}

function notARequest(): InvalidInputError {
  return new InvalidInputError('The body must be an ExportLogsServiceRequest: {"resourceLogs": […]}');
}

function toRecord(record: Members): OtlpRecord {
  const attributes = new Map<string, string>();
  for (const pair of listOf(record, 'attributes')) {
    const value = toPlain(getOwn(pair, 'value'));
    if (value !== null && typeof value !== 'object') attributes.set(textOf(getOwn(pair, 'key')), String(value));
  }
  const body = toPlain(getOwn(record, 'body'));
  const eventName = textOf(getOwn(record, 'eventName')) || attributes.get('event.name');
  const traceId = getOwn(record, 'traceId');
  const hex = Buffer.isBuffer(traceId) ? traceId.toString('hex') : textOf(traceId).toLowerCase();
  return {
    at: timeOf(getOwn(record, 'timeUnixNano')) ?? timeOf(getOwn(record, 'observedTimeUnixNano')),
    level: levelOf(getOwn(record, 'severityNumber'), getOwn(record, 'severityText')),
    message: body === null ? eventName || null : typeof body === 'object' ? jsonOf(body) : String(body),
    traceId: /^(?!0{32})[0-9a-f]{32}$/.test(hex) ? hex : null,
    attributes,
  };
}

function toPlain(value: unknown, depth = 0): Plain {
  if (!isMembers(value) || depth > DEPTH_MAX) return null;
  for (const [kind, read] of readers) {
    const member = getOwn(value, kind);
    if (member !== undefined && member !== null) return read(member, depth + 1);
  }
  return null;
}

const NOT_FINITE = /^(?:NaN|-?Infinity)$/;

const readers = Object.entries<(value: unknown, depth: number) => Plain>({
  stringValue: textOf,
  boolValue: (value) => value === true,
  intValue: integerOf,
  // Follows the JSON form of protobuf.
  doubleValue: (value) => (NOT_FINITE.test(String(value)) ? String(value) : numberOf(value)),
  bytesValue: (value) => (Buffer.isBuffer(value) ? value.toString('base64') : textOf(value)),
  arrayValue: (value, depth) => listOf(value, 'values').map((item) => toPlain(item, depth)),
  kvlistValue: (value, depth) =>
    Object.fromEntries(
      listOf(value, 'values').map((pair) => [textOf(getOwn(pair, 'key')), toPlain(getOwn(pair, 'value'), depth)]),
    ),
});

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function jsonOf(value: Plain): string {
  if (typeof value === 'bigint') return String(value);
  if (Array.isArray(value)) return `[${value.map(jsonOf).join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const pairs = Object.entries(value).map(([key, member]) => `${JSON.stringify(key)}:${jsonOf(member)}`);
  return `{${pairs.join()}}`;
}

/** Returns an integer like {@link numberOf}, exact even beyond 2^53. */
function integerOf(value: unknown): number | bigint {
  const number = numberOf(value);
  if (Number.isSafeInteger(number)) return number;
  const { low, high } = isMembers(value) ? value : {};
  if (typeof low === 'number' && typeof high === 'number') return (BigInt(high) << 32n) + BigInt(low >>> 0);
  return typeof value === 'string' && /^-?\d{1,20}$/.test(value) ? BigInt(value) : number;
}

/** Returns a number from a number, digits, or the halves of a 64-bit number; 0 for anything else. Exact up to 2^53. */
function numberOf(value: unknown): number {
  const { low, high } = isMembers(value) ? value : {};
  if (typeof low === 'number' && typeof high === 'number') return high * 2 ** 32 + (low >>> 0);
  const number = typeof value === 'number' || typeof value === 'string' ? Number(value) : 0;
  return Number.isFinite(number) ? number : 0;
}

/** Returns a time from nanoseconds since 1970; 0 means none. */
function timeOf(nanoseconds: unknown): Date | null {
  const date = new Date(Math.floor(numberOf(nanoseconds) / 1e6));
  return Number.isNaN(date.getTime()) || date.getTime() === 0 ? null : date;
}

/** Severity numbers have four values per level: trace, debug, info, warn, error, fatal. */
const levels = ['debug', 'debug', 'info', 'warn', 'error', 'error'];

function levelOf(number: unknown, text: unknown): string {
  const level = levels[Math.ceil(numberOf(number) / 4) - 1];
  if (level !== undefined) return level;
  const word = textOf(text).toLowerCase();
  if (/^(trace|debug)/.test(word)) return 'debug';
  if (/^warn/.test(word)) return 'warn';
  return /^(err|fatal|crit|alert|emerg)/.test(word) ? 'error' : 'info';
}

function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null;
}

/** Returns an own member: decoded messages inherit defaults for fields that were not sent. */
function getOwn(value: Members, name: string): unknown {
  return Object.hasOwn(value, name) ? value[name] : undefined;
}

function listOf(value: unknown, name: string): Members[] {
  const list = isMembers(value) ? getOwn(value, name) : undefined;
  return Array.isArray(list) ? (list as unknown[]).filter(isMembers) : [];
}

function wireTypes(): Record<string, protobuf.Type> {
  return (types ??= library().Root.fromJSON(FIELDS).nested as Record<string, protobuf.Type>);
}

/**
 * Decodes protobuf. Bytes become Buffers, and 64-bit numbers can be objects. Only fields that were sent are own members.
 *
 * @throws InvalidInputError
 */
export function decodeExport(bytes: Buffer): object {
  try {
    const reader = library().Reader.create(bytes);
    reader.discardUnknown = true;
    // Nested messages are decoded with the same reader.
    const readTag = reader.tag.bind(reader);
    let fields = 0;
    reader.tag = () => {
      fields += 1;
      if (fields > FIELDS_MAX) throw new RangeError(`it has more than ${FIELDS_MAX} fields`);
      return readTag();
    };
    return wireTypes().Request.decode(reader);
  } catch (error) {
    throw new InvalidInputError(`The body is not an ExportLogsServiceRequest in protobuf: ${(error as Error).message}`);
  }
}

export function encodeStatus(status: ExportStatus): Buffer {
  const { Status } = wireTypes();
  return Buffer.from(Status.encode(Status.fromObject(status)).finish());
}

export function encodeAnswer(answer: ExportAnswer): Buffer {
  const { Response } = wireTypes();
  return Buffer.from(Response.encode(Response.fromObject(answer)).finish());
}
