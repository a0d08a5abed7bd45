import { describe, expect, it } from '@jest/globals';
import { exportBytes, exportJson, type SentLog } from '../../../test/support/logs/otlp.js';
import { decodeExport, recordsOf, type OtlpRecord } from './otlp-records.js';

const at = new Date('2026-11-20T10:15:00.123Z');
const traceId = '5b8efff798038103d269b633813fc60c';

const logs: SentLog[] = [
  { at, severity: 9, body: 'It rains', traceId, attributes: { 'http.response.status_code': 200, 'url.path': '/mcp' } },
  { at, severity: 17, body: { kvlistValue: { values: [{ key: 'city', value: { stringValue: 'Ulm' } }] } } },
  { at, severity: 1, body: { arrayValue: { values: [{ intValue: '7' }, { doubleValue: 0.5 }, { boolValue: true }] } } },
  { at, severity: 13 },
];

const read = (request: unknown): OtlpRecord[] => [...recordsOf(request)];
const one = (record: object): OtlpRecord | undefined =>
  read({ resourceLogs: [{ scopeLogs: [{ logRecords: [record] }] }] })[0];

describe('OTLP records', () => {
  it('are equal from protobuf and from JSON', () => {
    const records = read(decodeExport(exportBytes(logs)));
    expect(records).toEqual(read(exportJson(logs)));
    expect(records).toEqual([
      {
        at,
        level: 'info',
        message: 'It rains',
        traceId,
        attributes: new Map([
          ['http.response.status_code', '200'],
          ['url.path', '/mcp'],
        ]),
      },
      { at, level: 'error', message: '{"city":"Ulm"}', traceId: null, attributes: new Map() },
      { at, level: 'debug', message: '[7,0.5,true]', traceId: null, attributes: new Map() },
      { at, level: 'warn', message: null, traceId: null, attributes: new Map() },
    ]);
  });

  it('accept any JSON in the place of a value', () => {
    const hostile: unknown[] = [
      { toString: 1, valueOf: 1 },
      [],
      null,
      7,
      'x',
      { low: {}, high: {} },
      { __proto__: null },
    ];
    for (const value of hostile) {
      for (const kind of ['stringValue', 'intValue', 'boolValue', 'bytesValue', 'arrayValue', 'kvlistValue']) {
        const record = one({
          body: { [kind]: value },
          timeUnixNano: value,
          severityNumber: value,
          severityText: value,
          traceId: value,
          attributes: [{ key: value, value: { [kind]: value } }, value],
        });
        expect(record?.message ?? '').toEqual(expect.any(String));
      }
    }
    expect(one({ body: { kvlistValue: { values: [{ key: '__proto__', value: { intValue: 1 } }] } } })?.message).toBe(
      '{"__proto__":1}',
    );
  });

  it('are cut where a value is nested too deeply', () => {
    let body: object = { stringValue: 'deep' };
    for (let i = 0; i < 50_000; i += 1) body = { arrayValue: { values: [body] } };
    expect(one({ body })?.message).toBe(`${'['.repeat(21)}null${']'.repeat(21)}`);
  });
});
