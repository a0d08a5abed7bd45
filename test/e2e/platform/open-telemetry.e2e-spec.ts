import { createServer, type IncomingMessage } from 'node:http';
import { afterAll, describe, expect } from '@jest/globals';
import { generateApiKey } from '../../../src/modules/auth/api-key.js';
import { testAccount, testApp } from '../../support/app.js';
import { createConnection } from '../../support/factories.js';
import { bundled } from '../../support/hosting/hosted-programs.js';
import { cleanUpPrograms, readySettings, runProgram } from '../../support/program.js';
import { until } from '../../support/until.js';
import { closing, start } from '../../support/upstream/upstream-clients.js';
import { listen, shut } from '../../support/upstream/upstream-net.js';
import type { Upstream } from '../../support/upstream/upstream.js';
import { verifies } from '../../support/verifies.js';

const SLOW_MS = 300_000;
const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const CALLER = { traceparent: `00-${TRACE_ID}-00f067aa0ba902b7-01`, tracestate: 'vendor=1' };

const PROGRAM = `
  import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
  export default () => new McpServer({ name: 'traced', version: '1.0.0' }).server;`;

interface Attribute {
  key: string;
  value: { stringValue?: string; intValue?: number };
}

interface Item {
  name: string;
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  severityText: string;
  body: { stringValue: string };
  attributes: Attribute[];
}

/** A collector that reads the JSON of OTLP. */
async function startCollector() {
  const received: { path: string; body: string }[] = [];
  const server = createServer((request: IncomingMessage, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => (body += text));
    request.on('end', () => {
      received.push({ path: request.url ?? '', body });
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  });
  const port = await listen(server);
  type Grouped = Record<string, { scopeSpans?: { spans: Item[] }[]; scopeLogs?: { logRecords: Item[] }[] }[]>;
  const items = (path: string) =>
    received
      .filter((one) => one.path === path)
      .flatMap(({ body }) => Object.values(JSON.parse(body) as Grouped).flat())
      .flatMap(({ scopeSpans = [], scopeLogs = [] }) => [
        ...scopeSpans.flatMap(({ spans }) => spans),
        ...scopeLogs.flatMap(({ logRecords }) => logRecords),
      ]);
  return {
    url: `http://127.0.0.1:${port}`,
    spans: () => items('/v1/traces'),
    logs: () => items('/v1/logs'),
    text: () => received.map(({ body }) => body).join(),
    close: () => shut(server),
  };
}

const attributesOf = ({ attributes }: Item) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue]));

/** The `tools/call` that the upstream saw last. */
function lastCall({ requests }: Upstream) {
  const calls = requests.filter(({ body }) => (body as { method?: string } | undefined)?.method === 'tools/call');
  const { headers, body } = calls[calls.length - 1];
  const { _meta: meta } = (body as { params: { _meta?: Record<string, unknown> } }).params;
  return { headers, meta };
}

const app = testApp();
const owner = testAccount(app);

afterAll(async () => {
  await cleanUpPrograms();
}, SLOW_MS);

describe('the trace context of a caller', () => {
  verifies('telemetry:context', 'goes upstream in headers and in _meta, with the id of the request', async () => {
    const upstream = closing(await start());
    const { path } = await createConnection(app, owner, { mcpUrl: upstream.url });
    const headers = {
      authorization: `Bearer ${owner.key}`,
      'content-type': 'application/json',
      'x-request-id': 'request-of-mine-1',
    };
    const rest = (more: object) =>
      fetch(`${app.url}${path}/.tools/echo`, {
        method: 'POST',
        headers: { ...headers, ...more },
        body: '{"message":"a"}',
      });
    await rest(CALLER);
    expect(lastCall(upstream)).toMatchObject({
      headers: { ...CALLER, 'x-request-id': 'request-of-mine-1' },
      meta: CALLER,
    });

    await rest({ traceparent: 'not one' });
    expect(lastCall(upstream).headers).toMatchObject({ 'x-request-id': 'request-of-mine-1' });
    expect(lastCall(upstream).headers).not.toHaveProperty('traceparent');
    expect(lastCall(upstream).meta?.traceparent).toBeUndefined();

    const own = { traceparent: CALLER.traceparent.replace('00f0', '11f0') };
    const params = { name: 'echo', arguments: { message: 'a' }, _meta: own };
    await fetch(`${app.url}${path}/mcp`, {
      method: 'POST',
      headers: { ...headers, ...CALLER, accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
    });
    expect(lastCall(upstream)).toMatchObject({ headers: CALLER, meta: own });
  });
});

describe('a service with a collector', () => {
  verifies(
    'telemetry:otlp',
    'sends one trace from the request to the upstream, spans of jobs and hosted calls, and runtime logs, without keys',
    async () => {
      const collector = closing(await startCollector());
      const upstream = closing(await start());
      const key = generateApiKey();
      const service = runProgram('main.js', {
        ...(await readySettings(key)),
        EGRESS_ALLOW: 'loopback',
        METRICS_TOKEN: 'open',
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_BSP_SCHEDULE_DELAY: '100',
        ACCESS_LOG: 'true',
      });
      const url = await service.url();
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
      const send = (method: string, path: string, body: object, more = {}) =>
        fetch(`${url}${path}`, { method, headers: { ...headers, ...more }, body: JSON.stringify(body) });
      await send('PUT', '/namespaces/traced', {});
      expect((await send('PUT', '/connect/traced/echo', { mcpUrl: upstream.url })).status).toBe(201);
      const answer = await send('POST', '/connect/traced/echo/.tools/echo', { message: 'canary' }, CALLER);
      expect(answer.status).toBe(200);

      const spans = await until(() => {
        const found = collector.spans().filter(({ traceId }) => traceId === TRACE_ID);
        return found.some(({ name }) => name === 'tools/call echo') && found.length > 1 ? found : null;
      }, 'the trace arrives');
      const request = spans.find(({ name }) => name.startsWith('POST')) as Item;
      const call = spans.find(({ name }) => name === 'tools/call echo') as Item;
      expect(request.parentSpanId).toBe('00f067aa0ba902b7');
      expect(call.parentSpanId).toBe(request.spanId);
      expect(attributesOf(call)).toMatchObject({ 'mcp.method.name': 'tools/call', 'gen_ai.tool.name': 'echo' });
      expect(lastCall(upstream).headers.traceparent).toBe(`00-${TRACE_ID}-${call.spanId}-01`);
      expect(BigInt(call.endTimeUnixNano) - BigInt(call.startTimeUnixNano)).toBeGreaterThan(0n);
      await until(
        () =>
          service.logs().some(({ msg, traceId }) => String(msg).includes('/echo/.tools/echo') && traceId === TRACE_ID),
        'the line of the request has the id of the trace',
      );
      const names = () => collector.spans().map(({ name }) => name);
      await until(() => names().some((name) => name === 'INSERT' || name === 'SELECT'), 'queries are in traces');
      const isKeyRead = (span: Item) => String(attributesOf(span)['db.query.text']).includes('FROM api_keys');
      await until(() => collector.spans().some(isKeyRead), 'prepared statements are in traces');

      const form = new FormData();
      form.set('payload', '{"type":"hosted"}');
      form.set('module', new Blob([await bundled(PROGRAM)]), 'index.js');
      const releases = `${url}/servers/traced%2Fprogram/releases`;
      const authorization = { authorization: headers.authorization };
      await send('PUT', '/servers/traced%2Fprogram', {});
      expect((await fetch(releases, { method: 'PUT', headers: authorization, body: form })).status).toBe(202);
      await until(async () => {
        const latest = await fetch(`${releases}/latest`, { headers: authorization });
        return ((await latest.json()) as { status: string }).status === 'SUCCESS';
      }, 'the release is published');
      const run = { accept: 'application/json, text/event-stream', ...CALLER };
      const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
      expect((await send('POST', '/run/traced--program', list, run)).status).toBe(200);
      const hosted = await until(
        () => collector.spans().find(({ name, traceId }) => name === 'hosted call' && traceId === TRACE_ID),
        'the hosted call is in the trace of its caller',
      );
      expect(hosted.parentSpanId).toBeDefined();
      await until(() => names().some((name) => name.startsWith('process ')), 'jobs have spans');

      const callLogs = () => collector.logs().filter(({ body }) => body.stringValue === 'tools/call echo: ok');
      const log = await until(() => callLogs().at(0), 'the log of the call arrives');
      expect(attributesOf(log)).toMatchObject({
        'slipway.connection': 'traced/echo',
        'gen_ai.tool.name': 'echo',
        'slipway.outcome': 'ok',
      });
      expect(collector.text()).not.toContain(key);
      expect(collector.text()).not.toContain('canary');
      const metrics = await (await fetch(`${url}/metrics`)).text();
      expect(metrics).toMatch(/slipway_log_export_sent_total \d+/);

      // Its row and its log wait in memory when the service stops.
      expect((await send('POST', '/connect/traced/echo/.tools/echo', { message: 'last' })).status).toBe(200);
      service.kill('SIGTERM');
      expect(await service.ended).toBe(0);
      expect(callLogs()).toHaveLength(2);
    },
    SLOW_MS,
  );

  verifies(
    'telemetry:otlp',
    'counts logs that the collector does not take, and serves calls meanwhile',
    async () => {
      const upstream = closing(await start());
      const key = generateApiKey();
      const service = runProgram('main.js', {
        ...(await readySettings(key)),
        EGRESS_ALLOW: 'loopback',
        METRICS_TOKEN: 'open',
        OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: 'http://127.0.0.1:1/v1/logs',
        OTEL_EXPORTER_OTLP_TIMEOUT: '500',
      });
      const url = await service.url();
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
      const send = (method: string, path: string, body: object) =>
        fetch(`${url}${path}`, { method, headers, body: JSON.stringify(body) });
      await send('PUT', '/namespaces/traced', {});
      await send('PUT', '/connect/traced/echo', { mcpUrl: upstream.url });
      expect((await send('POST', '/connect/traced/echo/.tools/echo', { message: 'a' })).status).toBe(200);
      await until(
        async () => /slipway_log_export_lost_total [1-9]/.test(await (await fetch(`${url}/metrics`)).text()),
        'lost records are counted',
      );
      service.kill('SIGTERM');
      expect(await service.ended).toBe(0);
    },
    SLOW_MS,
  );
});
