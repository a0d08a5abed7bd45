import protobuf from 'protobufjs';

/**
 * The messages of opentelemetry-proto 1.x as exporters send them, from `common/v1/common.proto`, `logs/v1/logs.proto`,
 * `resource/v1/resource.proto` and `collector/logs/v1/logs_service.proto`, in one file.
 */
const PROTO = `
  syntax = "proto3";
  message AnyValue {
    oneof value {
      string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4;
      ArrayValue array_value = 5; KeyValueList kvlist_value = 6; bytes bytes_value = 7;
    }
  }
  message ArrayValue { repeated AnyValue values = 1; }
  message KeyValueList { repeated KeyValue values = 1; }
  message KeyValue { string key = 1; AnyValue value = 2; }
  message InstrumentationScope {
    string name = 1; string version = 2; repeated KeyValue attributes = 3; uint32 dropped_attributes_count = 4;
  }
  message Resource { repeated KeyValue attributes = 1; uint32 dropped_attributes_count = 2; }
  message ResourceLogs { Resource resource = 1; repeated ScopeLogs scope_logs = 2; string schema_url = 3; }
  message ScopeLogs { InstrumentationScope scope = 1; repeated LogRecord log_records = 2; string schema_url = 3; }
  message LogRecord {
    fixed64 time_unix_nano = 1; fixed64 observed_time_unix_nano = 11; int32 severity_number = 2;
    string severity_text = 3; AnyValue body = 5; repeated KeyValue attributes = 6;
    uint32 dropped_attributes_count = 7; fixed32 flags = 8; bytes trace_id = 9; bytes span_id = 10;
    string event_name = 12;
  }
  message ExportLogsServiceRequest { repeated ResourceLogs resource_logs = 1; }
  message Status { int32 code = 1; string message = 2; }
  message ExportLogsServiceResponse { ExportLogsPartialSuccess partial_success = 1; }
  message ExportLogsPartialSuccess { int64 rejected_log_records = 1; string error_message = 2; }
`;
const { root } = protobuf.parse(PROTO, { keepCase: false });

/** A log record as an exporter sends it; attributes by name. */
export interface SentLog {
  at?: Date;
  severity?: number;
  body?: object | string;
  traceId?: string;
  eventName?: string;
  attributes?: Record<string, string | number>;
}

const valueOf = (value: object | string | number): object =>
  typeof value === 'object' ? value : typeof value === 'number' ? { intValue: String(value) } : { stringValue: value };

const pairsOf = (attributes: Record<string, string | number>): object[] =>
  Object.entries(attributes).map(([key, value]) => ({ key, value: valueOf(value) }));

/** An ExportLogsServiceRequest in OTLP's JSON form. */
export function exportJson(logs: SentLog[]): object {
  const logRecords = logs.map(({ at = new Date(), severity = 9, body, traceId, eventName, attributes = {} }) => ({
    timeUnixNano: `${at.getTime()}000000`,
    observedTimeUnixNano: `${at.getTime()}000000`,
    severityNumber: severity,
    severityText: 'TEXT',
    ...(body === undefined ? {} : { body: valueOf(body) }),
    ...(eventName === undefined ? {} : { eventName }),
    attributes: pairsOf(attributes),
    droppedAttributesCount: 0,
    flags: 1,
    ...(traceId === undefined ? {} : { traceId, spanId: 'eee19b7ec3c1b174' }),
  }));
  const scope = { name: 'test', version: '1.0.0' };
  const resource = { attributes: pairsOf({ 'service.name': 'weather' }) };
  return { resourceLogs: [{ resource, scopeLogs: [{ scope, logRecords }], schemaUrl: 'https://example.com' }] };
}

/** The same in protobuf. */
export function exportBytes(logs: SentLog[]): Buffer {
  const type = root.lookupType('ExportLogsServiceRequest');
  // JSON has ids in hex; bytes are base64 in what protobufjs takes.
  const converted = JSON.parse(JSON.stringify(exportJson(logs)), (key, value: unknown) =>
    (key === 'traceId' || key === 'spanId') && typeof value === 'string'
      ? Buffer.from(value, 'hex').toString('base64')
      : value,
  ) as object;
  return Buffer.from(type.encode(type.fromObject(converted)).finish());
}

/** Status of a failed export, as JSON. */
export function statusOf(bytes: Buffer): object {
  const type = root.lookupType('Status');
  return type.toObject(type.decode(bytes));
}

/** Answer to an export, as JSON. */
export function answerOf(bytes: Buffer): object {
  const type = root.lookupType('ExportLogsServiceResponse');
  return type.toObject(type.decode(bytes), { longs: Number });
}
