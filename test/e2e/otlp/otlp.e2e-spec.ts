import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { describe, expect } from '@jest/globals';
import { OTLPLogExporter as JsonExporter } from '@opentelemetry/exporter-logs-otlp-http';
import { OTLPLogExporter as ProtobufExporter } from '@opentelemetry/exporter-logs-otlp-proto';
import { InMemoryLogRecordExporter, LoggerProvider, SimpleLogRecordProcessor } from '@opentelemetry/sdk-logs';
import { testAccount, testApp, uniqueName } from '../../support/app.js';
import { pathOf } from '../../support/database/server-rows.js';
import { createServer } from '../../support/factories.js';
import { logWith, readLog, type ShownInvocation } from '../../support/logs/invocations.js';
import { answerOf, exportBytes, exportJson, statusOf, type SentLog } from '../../support/logs/otlp.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const owner = testAccount(app);
const stranger = testAccount(app);

const traceId = (): string => randomBytes(16).toString('hex');
const messagesOf = ({ logs }: ShownInvocation): string[] => logs.map(({ message }) => message);

interface Told {
  status: number;
  type: string | null;
  bytes: Buffer;
}

/** Posts bytes as an exporter does. */
async function post(name: string, body: Buffer, headers: Record<string, string>, account = owner): Promise<Told> {
  const response = await fetch(`${app.url}${pathOf(name, '/otlp/v1/logs')}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${account.key}`, ...headers },
    body: new Uint8Array(body),
  });
  return {
    status: response.status,
    type: response.headers.get('content-type'),
    bytes: Buffer.from(await response.arrayBuffer()),
  };
}

const protobuf = { 'content-type': 'application/x-protobuf' };

/** The same records in every form an exporter can choose. */
const forms: Record<string, (name: string, logs: SentLog[]) => Promise<Told>> = {
  protobuf: (name, logs) => post(name, exportBytes(logs), protobuf),
  'protobuf, gzip': (name, logs) =>
    post(name, gzipSync(exportBytes(logs)), { ...protobuf, 'content-encoding': 'gzip' }),
  'protobuf by its registered name, x-gzip': (name, logs) =>
    post(name, gzipSync(exportBytes(logs)), { 'content-type': 'application/protobuf', 'content-encoding': 'x-gzip' }),
  json: (name, logs) =>
    post(name, Buffer.from(JSON.stringify(exportJson(logs))), { 'content-type': 'application/json' }),
  'json, gzip': (name, logs) =>
    post(name, gzipSync(JSON.stringify(exportJson(logs))), {
      'content-type': 'application/json; charset=utf-8',
      'content-encoding': 'gzip',
    }),
};

describe('OTLP log records', () => {
  verifies('runtime-log:otlp', 'are taken in every form, answered in it, and shown alike', async () => {
    const name = await createServer(app, owner);
    for (const [form, send] of Object.entries(forms)) {
      const trace = traceId();
      const told = await send(name, [
        { severity: 9, body: `rain by ${form}`, traceId: trace, attributes: { 'mcp.method.name': 'tools/call' } },
        {
          severity: 17,
          traceId: trace,
          body: 'it failed',
          attributes: {
            'exception.type': 'RangeError',
            'exception.message': 'too far',
            'gen_ai.tool.name': 'forecast',
            'http.response.status_code': 200,
            'url.full': 'https://example.com/mcp?key=secret',
          },
        },
      ]);
      const isJson = form.startsWith('json');
      expect([form, told.status]).toEqual([form, 200]);
      expect(told.type).toMatch(isJson ? /^application\/json/ : /^application\/(?:x-)?protobuf$/);
      expect(isJson ? JSON.parse(told.bytes.toString()) : answerOf(told.bytes)).toEqual({});
      const [shown] = (
        await logWith(app, owner, name, 1, `?search=${encodeURIComponent(`rain by ${form}`)}&to=9999-01-01`)
      ).invocations;
      expect(shown).toMatchObject({
        request: { method: 'POST', url: 'https://example.com/mcp' },
        response: { status: 200, outcome: 'exception' },
        logs: [
          { level: 'info', message: `rain by ${form}` },
          { level: 'error', message: 'it failed' },
        ],
        exceptions: [{ name: 'RangeError', message: 'too far' }],
        rpcMethod: 'tools/call',
        tool: 'forecast',
      });
    }
    expect((await readLog(app, owner, name)).total).toBe(Object.keys(forms).length);
  });

  verifies(
    'runtime-log:otlp',
    'become one invocation for each trace, across several exports and repeated ones',
    async () => {
      const name = await createServer(app, owner);
      const [trace, at] = [traceId(), Date.now() - 5_000];
      const first = [{ at: new Date(at), body: 'one', traceId: trace, attributes: { 'gen_ai.tool.name': 'forecast' } }];
      const later = ['two', 'three', 'four', 'five', 'six', 'seven', 'seven'];
      const second = later.map((body) => ({ at: new Date(at + 2_000), body, traceId: trace }));
      await forms.protobuf(name, first);
      await logWith(app, owner, name, 1, '?search=one');
      await forms.json(name, second);
      await logWith(app, owner, name, 1, '?search=two');
      await forms.protobuf(name, first);
      await forms.protobuf(name, second);
      await forms.json(name, [{ body: 'another', traceId: traceId() }]);
      const waiting = () => app.database.query<unknown[]>('SELECT FROM log_batches');
      await until(async () => (await waiting()).length === 0, 'all are written');
      const { invocations } = await readLog(app, owner, name, '?tool=forecast');
      expect(invocations.map(messagesOf)).toEqual([['one', ...later]]);
      expect((await readLog(app, owner, name)).total).toBe(2);
    },
  );

  verifies('runtime-log:otlp', 'are counted in the response when they are rejected', async () => {
    const name = await createServer(app, owner);
    const old = { at: new Date(Date.now() - 2 * 86_400_000), body: 'old' };
    const partialSuccess = {
      rejectedLogRecords: 2,
      errorMessage: 'The time of a record must not be older than 24 hours',
    };
    const told = await forms.protobuf(name, [old, { body: 'new' }, old]);
    expect([told.status, answerOf(told.bytes)]).toEqual([200, { partialSuccess }]);
    const json = await forms.json(name, [old, old]);
    expect([json.status, JSON.parse(json.bytes.toString())]).toEqual([200, { partialSuccess }]);
    const { invocations } = await logWith(app, owner, name, 1);
    expect(invocations.map(messagesOf)).toEqual([['new']]);
  });

  verifies('runtime-log:otlp', 'are rejected in another form, or if too large when unpacked', async () => {
    const name = await createServer(app, owner);
    const gzip = { 'content-encoding': 'gzip' };
    const json = { 'content-type': 'application/json' };
    const bomb = gzipSync(Buffer.alloc(50_000_000));
    expect(bomb.length).toBeLessThan(100_000);
    const cases: [Buffer, Record<string, string>, number, number][] = [
      [Buffer.from('hello'), protobuf, 400, 3],
      [Buffer.from('{"resourceLogs": 7}'), json, 400, 3],
      [Buffer.from('{"resourceLogs": '), json, 400, 3],
      [Buffer.from('[{"resourceLogs": []}]'), json, 400, 3],
      [Buffer.from('[]'), json, 400, 3],
      [Buffer.from('{"resourceLogs": [5]}'), json, 400, 3],
      [Buffer.from('{"resourceLogs": [{"scopeLogs": [{"logRecords": [null]}]}]}'), json, 400, 3],
      [Buffer.from('x'), { 'content-type': 'text/plain' }, 415, 3],
      [Buffer.from('no gzip'), { ...protobuf, ...gzip }, 400, 3],
      [exportBytes([{ body: 'x' }]), { ...protobuf, 'content-encoding': 'zstd' }, 415, 3],
      [exportBytes([{ body: 'x' }]), { ...protobuf, authorization: 'Bearer none' }, 401, 16],
      [Buffer.from('{}'), { ...json, authorization: 'Bearer none' }, 401, 16],
      [bomb, { ...protobuf, ...gzip }, 413, 8],
      [bomb, { ...json, ...gzip }, 413, 8],
      [Buffer.alloc(1_048_577), { 'content-type': 'application/protobuf' }, 413, 8],
    ];
    for (const [body, headers, wanted, code] of cases) {
      const { status, type, bytes } = await post(name, body, headers);
      const what = [JSON.stringify(headers), body.length];
      const isProtobuf = headers['content-type']?.includes('protobuf');
      const message = expect.stringMatching(/./);
      const told = isProtobuf ? statusOf(bytes) : (JSON.parse(bytes.toString()) as object);
      expect([...what, status, told]).toEqual([...what, wanted, isProtobuf ? { code, message } : { error: message }]);
      expect(type).toContain(isProtobuf ? 'application/x-protobuf' : 'application/json');
    }
    // An exporter without anything to say is not wrong.
    expect((await post(name, Buffer.alloc(0), protobuf)).status).toBe(200);
    expect((await readLog(app, owner, name)).total).toBe(0);
  });

  verifies('wire:otlp-values', 'keep values that are 0, false or empty, and all digits, in every form', async () => {
    const list = (values: object[]) => ({ arrayValue: { values } });
    const of = (value: object) => ({ kvlistValue: { values: [{ key: 'k', value }] } });
    const bodies: [object, string][] = [
      [of({ intValue: 0 }), '{"k":0}'],
      [of({ doubleValue: 0 }), '{"k":0}'],
      [of({ boolValue: false }), '{"k":false}'],
      [of({ stringValue: '' }), '{"k":""}'],
      [of({}), '{"k":null}'],
      [list([{ stringValue: 'x' }, { intValue: 0 }, { boolValue: false }, { stringValue: '' }]), '["x",0,false,""]'],
      [list([]), '[]'],
      [{ boolValue: false }, 'false'],
      [{ intValue: 0 }, '0'],
      [{ stringValue: '' }, ''],
      [{ intValue: '9007199254740993' }, '9007199254740993'],
      [of({ intValue: '-9223372036854775808' }), '{"k":-9223372036854775808}'],
      [list([{ intValue: '9223372036854775807' }, { intValue: -1 }]), '[9223372036854775807,-1]'],
      [of({ doubleValue: 'NaN' }), '{"k":"NaN"}'],
      [{ doubleValue: '-Infinity' }, '-Infinity'],
    ];
    const at = Date.now();
    const logs = bodies.map(([body], i) => ({ at: new Date(at - 1_000 + i), body }));
    for (const [form, sendAll] of Object.entries(forms)) {
      const name = await createServer(app, owner);
      expect([form, (await sendAll(name, logs)).status]).toEqual([form, 200]);
      const { invocations } = await logWith(app, owner, name, 1);
      expect([form, invocations.flatMap(messagesOf)]).toEqual([form, bodies.map(([, text]) => text)]);
    }
  });

  verifies('wire:otlp-events', 'are stored by the name of their event, or counted as rejected', async () => {
    const logs: SentLog[] = [
      { eventName: 'gen_ai.user.message' },
      { eventName: 'gen_ai.choice', body: 'with a body' },
      { attributes: { 'event.name': 'older.event' } },
      { eventName: 'gen_ai.choice', attributes: { 'event.name': 'older.event' } },
      { attributes: { other: 'x' } },
      {},
    ];
    for (const [form, sendAll] of Object.entries(forms)) {
      const name = await createServer(app, owner);
      const { bytes } = await sendAll(name, logs);
      const told = form.startsWith('json') ? (JSON.parse(bytes.toString()) as object) : answerOf(bytes);
      expect([form, told]).toEqual([
        form,
        { partialSuccess: { rejectedLogRecords: 2, errorMessage: expect.stringMatching(/a body, an eventName/) } },
      ]);
      const { invocations } = await logWith(app, owner, name, 1);
      expect([form, invocations.flatMap(messagesOf).sort()]).toEqual([
        form,
        ['gen_ai.choice', 'gen_ai.user.message', 'older.event', 'with a body'],
      ]);
    }
  });

  verifies(
    ['wire:otlp-values', 'wire:otlp-events'],
    'are kept and refused as the official exporters expect',
    async () => {
      const memory = new InMemoryLogRecordExporter();
      const provider = new LoggerProvider({ processors: [new SimpleLogRecordProcessor({ exporter: memory })] });
      const logger = provider.getLogger('spec');
      const bodies = [
        { n: 0, d: 0.5, ok: false, s: '', list: ['x', 0, false, ''], empty: {} },
        0,
        false,
        'text',
        ['a', 1],
      ];
      for (const [i, body] of bodies.entries()) logger.emit({ body, timestamp: Date.now() - 1_000 + i });
      logger.emit({ eventName: 'gen_ai.choice', timestamp: Date.now() });
      logger.emit({ attributes: { other: 'x' } });
      const records = memory.getFinishedLogRecords();
      for (const Exporter of [JsonExporter, ProtobufExporter]) {
        const name = await createServer(app, owner);
        const sent = (key: string) =>
          new Promise<Error | undefined>((resolve) => {
            const url = app.url + pathOf(name, '/otlp/v1/logs');
            const exporter = new Exporter({ url, headers: { authorization: `Bearer ${key}` } });
            exporter.export(records, ({ error }) => resolve(error));
          });
        expect(await sent(owner.key)).toBeUndefined();
        const { invocations } = await logWith(app, owner, name, 1);
        const shown = [
          ...bodies.map((body) => (typeof body === 'string' ? body : JSON.stringify(body))),
          'gen_ai.choice',
        ];
        expect(invocations.flatMap(messagesOf)).toEqual(shown);
        expect(await sent(stranger.key)).toMatchObject({ code: 404 });
        expect(await sent('none')).toMatchObject({ code: 401 });
      }
    },
  );

  verifies('runtime-log:own', 'are taken for one’s own servers only', async () => {
    const name = await createServer(app, owner);
    const bytes = exportBytes([{ body: 'x' }]);
    for (const account of [stranger, app.operator]) {
      const exported = await post(name, bytes, protobuf, account);
      expect([exported.status, statusOf(exported.bytes)]).toEqual([404, { code: 5, message: 'Server not found' }]);
    }
    const none = `${name.split('/')[0]}/${uniqueName('none')}`;
    expect((await post(none, bytes, protobuf)).status).toBe(404);
  });
});
