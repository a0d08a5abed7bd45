import { setTimeout as wait } from 'node:timers/promises';
import { Logger, type OnApplicationShutdown } from '@nestjs/common';
import { OTLPLogExporter } from '@opentelemetry/exporter-logs-otlp-http';
import type { ReadableLogRecord } from '@opentelemetry/sdk-logs';
import { LRUCache } from 'lru-cache';
import type { DataSource } from 'typeorm';
import { LogNamesRepository, WriteBehind, type LogNames } from '../../extension.js';
import type { CallEvents, ConnectionCall, Invocation, Metrics } from '../../extension.js';

const BATCH_MAX = 512;

/** Characters of waiting records. More are dropped and counted as `log export` in `slipway_buffer_dropped_total`. */
const CHARS_MAX = 16 * 1024 * 1024;

const NAMES_MAX = 50_000;

/** Time at shutdown for the waiting records. */
const LAST_SEND_MS_MAX = 2_000;

/** Severity numbers by level; other levels are sent as `info`. */
const SEVERITY: ReadonlyMap<string, number> = new Map(
  Object.entries({ debug: 5, info: 9, log: 9, warn: 13, error: 17 }),
);

type Part = Invocation | ConnectionCall;

type LogRecord = Omit<ReadableLogRecord, 'resource'>;

/**
 * Sends the logs by OTLP over HTTP, in addition to storing them. Endpoint and headers are those of the standard
 * environment variables, which the library reads; it retries what the collector could not accept yet. Records that
 * cannot be sent are counted.
 */
export class LogExport implements OnApplicationShutdown {
  private readonly logger = new Logger('log export');
  private readonly exporter = new OTLPLogExporter();
  private readonly names = new LRUCache<string, LogNames>({ maxSize: NAMES_MAX, sizeCalculation: () => 1 });
  private readonly waiting = new WriteBehind<number, { part: Part; record: LogRecord }>(
    'log export',
    (batch) => this.send([...batch.values()]),
    { of: ({ record }) => (record.body as string).length, max: CHARS_MAX },
  );
  private sequence = 0;
  private sent = 0;
  private lost = 0;

  constructor(
    private readonly database: DataSource,
    private readonly resource: ReadableLogRecord['resource'],
    callEvents: CallEvents,
    metrics: Metrics,
  ) {
    metrics.counter('slipway_log_export_sent_total', 'Log records that the collector took.', () => this.sent);
    metrics.counter('slipway_log_export_lost_total', 'Log records that the collector did not take.', () => this.lost);
    callEvents.on('written', (parts) => {
      for (const part of parts) {
        for (const record of recordsOf(part)) this.waiting.set((this.sequence += 1), { part, record });
      }
    });
  }

  async onApplicationShutdown(): Promise<void> {
    await Promise.race([this.waiting.onApplicationShutdown(), wait(LAST_SEND_MS_MAX, undefined, { ref: false })]);
    await this.exporter.shutdown();
  }

  private async send(all: { part: Part; record: LogRecord }[]): Promise<void> {
    for (let first = 0; first < all.length; first += BATCH_MAX) {
      const records: ReadableLogRecord[] = [];
      for (const { part, record } of all.slice(first, first + BATCH_MAX)) {
        const { server, connection, account } = await this.namesOf(part);
        const names = { 'slipway.server': server, 'slipway.connection': connection, 'slipway.account': account };
        records.push({ ...record, resource: this.resource, attributes: { ...record.attributes, ...names } });
      }
      // Code 0: the collector accepted them.
      const { code, error } = await new Promise<{ code: number; error?: Error }>((resolve) => {
        this.exporter.export(records, resolve);
      });
      if (code === 0) this.sent += records.length;
      else {
        this.lost += records.length;
        this.logger.warn({ msg: `${records.length} log records could not be sent to the collector`, err: error });
      }
    }
  }

  private async namesOf(part: Part): Promise<LogNames> {
    const [kind, id] =
      'serverId' in part ? (['server', part.serverId] as const) : (['connection', part.connectionId] as const);
    const names = this.names.get(id) ?? (await LogNamesRepository.find(this.database, kind, id));
    this.names.set(id, names);
    return names;
  }
}

/** Scope of all records. The library groups records by this object. */
const SCOPE = { name: 'slipway' };

function* recordsOf(part: Part): Generator<LogRecord> {
  const { id, method, url, rpcMethod, toolName, status, outcome, lines, exceptions } = part;
  const common = { 'slipway.invocation.id': id };
  for (const { at, level, message } of lines) yield record(at, level, message, common);
  for (const { at, name, message } of exceptions) {
    yield record(at, 'error', `${name}: ${message}`, {
      ...common,
      'exception.type': name,
      'exception.message': message,
    });
  }
  // Only the part of the process that responded to the request has a method.
  if (!method) return;
  const level = outcome === 'ok' ? 'info' : 'warn';
  const subject = [rpcMethod, toolName].filter(Boolean).join(' ') || `${method} ${url ?? ''}`;
  yield record(part.at ?? Date.now(), level, `${subject}: ${outcome ?? 'unknown'}`, {
    ...common,
    'http.request.method': method,
    'url.path': url ?? undefined,
    'mcp.method.name': rpcMethod ?? undefined,
    'gen_ai.tool.name': toolName ?? undefined,
    'http.response.status_code': status ?? undefined,
    'slipway.outcome': outcome ?? undefined,
    'slipway.duration_ms': ('timing' in part ? part.timing?.totalMs : (part as Invocation).wallMs) ?? undefined,
  });
}

function record(
  at: number,
  level: string,
  body: string,
  attributes: Record<string, string | number | undefined>,
): LogRecord {
  return {
    hrTime: [Math.floor(at / 1000), Math.round((at % 1000) * 1e6)],
    hrTimeObserved: [Math.floor(Date.now() / 1000), 0],
    severityText: level,
    severityNumber: SEVERITY.get(level) ?? 9,
    body,
    instrumentationScope: SCOPE,
    attributes,
    droppedAttributesCount: 0,
  };
}
