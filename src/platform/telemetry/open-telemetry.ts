import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import {
  context,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Context,
  type Span,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import type { Resource } from '@opentelemetry/resources';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import pg from 'pg';
import type { SpanAttributes, SpanHeaders, Tracing } from './tracing.js';

/**
 * Sends traces by OTLP over HTTP. Endpoint, headers, sampler, batches and the service's name are those of the standard
 * environment variables (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_TRACES_SAMPLER`, …), which the libraries read.
 */
export class OpenTelemetry implements Tracing {
  private readonly tracer = trace.getTracer('slipway');
  private readonly provider: NodeTracerProvider;

  constructor(resource: Resource) {
    this.provider = new NodeTracerProvider({
      resource,
      spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
    });
    this.provider.register();
    this.tracer = trace.getTracer('slipway');
    const run: RunInSpan = (name, attributes, work) => this.run(name, 'client', attributes, work);
    // A span for each query within a trace: a string sent to a client, or a prepared statement sent to a pool.
    traceMethod(pg.Client.prototype, run, (first) => (typeof first === 'string' ? first : null));
    traceMethod(pg.Pool.prototype, run, (first) => (first as Partial<pg.QueryConfig> | undefined)?.text ?? null);
  }

  handle(request: IncomingMessage, response: ServerResponse, handle: () => void): void {
    const { method = '', url = '' } = request;
    const path = url.split('?', 1)[0];
    const attributes = { 'http.request.method': method, 'url.path': path };
    const span = this.tracer.startSpan(method, { kind: SpanKind.SERVER, attributes }, parentIn(request.headers));
    response.once('close', () => {
      const { statusCode } = response;
      const route = (request as { route?: { path?: string } }).route?.path;
      if (route) span.updateName(`${method} ${route}`).setAttribute('http.route', route);
      span.setAttribute('http.response.status_code', statusCode);
      if (statusCode >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
    });
    context.with(trace.setSpan(context.active(), span), handle);
  }

  async run<T>(
    name: string,
    kind: 'client' | 'internal',
    attributes: SpanAttributes,
    work: (headers: SpanHeaders) => Promise<T>,
  ): Promise<T> {
    const options = { kind: kind === 'client' ? SpanKind.CLIENT : SpanKind.INTERNAL, attributes };
    const span = this.tracer.startSpan(name, options);
    const inside = trace.setSpan(context.active(), span);
    const headers = {} as SpanHeaders;
    propagation.inject(inside, headers);
    try {
      return await context.with(inside, work, undefined, headers);
    } catch (error) {
      fail(span, error as Error);
      throw error;
    } finally {
      span.end();
    }
  }

  record(
    name: string,
    headers: IncomingHttpHeaders,
    {
      at,
      endedAt,
      attributes,
      error,
    }: { at: number; endedAt: number; attributes: SpanAttributes; error: Error | null },
  ): void {
    const span = this.tracer.startSpan(name, { kind: SpanKind.INTERNAL, attributes, startTime: at }, parentIn(headers));
    if (error) fail(span, error);
    span.end(endedAt);
  }

  traceId(): string | undefined {
    return trace.getActiveSpan()?.spanContext().traceId;
  }

  stop(): Promise<void> {
    return this.provider.shutdown();
  }
}

function parentIn(headers: IncomingHttpHeaders): Context {
  return propagation.extract(ROOT_CONTEXT, headers);
}

/** Records only the name: a message can repeat arguments of a call. */
function fail(span: Span, { name }: Error): void {
  span.setStatus({ code: SpanStatusCode.ERROR }).setAttribute('error.type', name);
}

type RunInSpan = <T>(name: string, attributes: SpanAttributes, work: () => Promise<T>) => Promise<T>;

/** @param textOf the SQL of a first argument that makes a span; null for any other */
function traceMethod(
  prototype: Pick<pg.ClientBase, 'query'>,
  run: RunInSpan,
  textOf: (first: unknown) => string | null,
): void {
  const query = prototype.query as (this: unknown, ...args: unknown[]) => unknown;
  const runTraced = function (this: unknown, ...args: unknown[]): unknown {
    const text = textOf(args[0]);
    const isTraced = text !== null && typeof args.at(-1) !== 'function' && trace.getActiveSpan();
    if (!isTraced) return query.apply(this, args);
    const operation = /\w+/.exec(text)?.[0].toUpperCase() ?? 'SQL';
    const attributes = {
      'db.system.name': 'postgresql',
      'db.operation.name': operation,
      // The SQL has placeholders, never values.
      'db.query.text': text,
    };
    return run(operation, attributes, () => query.apply(this, args) as Promise<unknown>);
  };
  prototype.query = runTraced as typeof prototype.query;
}
