import protobuf from 'protobufjs/light.js';
import { InvalidInputError } from '../../../platform/errors/domain-error.js';

/**
 * The fields of OTLP logs that are read, with the field numbers of opentelemetry-proto (`logs.proto`, `common.proto`,
 * `logs_service.proto`); other fields are skipped. Names are those of OTLP's JSON form.
 */
const { nested } = protobuf.Root.fromJSON({
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
      },
    },
    AnyValue: {
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
    Response: { fields: { partialSuccess: { type: 'PartialSuccess', id: 1 } } },
    PartialSuccess: {
      fields: { rejectedLogRecords: { type: 'int64', id: 1 }, errorMessage: { type: 'string', id: 2 } },
    },
  },
});
const { Request, Response } = nested as Record<string, protobuf.Type>;

/** The answer to an export; without `partialSuccess` all records were accepted. */
export interface ExportAnswer {
  partialSuccess?: { rejectedLogRecords: number; errorMessage: string };
}

/**
 * Decodes an ExportLogsServiceRequest into an object like its JSON form, but bytes are Buffers and 64-bit numbers may be
 * objects. Only fields that were sent are own members.
 *
 * @throws InvalidInputError
 */
export function decodeExport(bytes: Buffer): object {
  try {
    return Request.decode(bytes);
  } catch (error) {
    throw new InvalidInputError(`The body is no ExportLogsServiceRequest in protobuf: ${(error as Error).message}`);
  }
}

/** Encodes an ExportLogsServiceResponse. */
export function encodeAnswer(answer: ExportAnswer): Buffer {
  return Buffer.from(Response.encode(Response.fromObject(answer)).finish());
}
