import type { IncomingMessage, ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import { namesType } from '../text/media-type.js';
import { Metrics, type Durations, type LabeledCounter } from './metrics.js';

/** `registry`: servers, skills, namespaces, accounts. `other`: everything else, such as health. */
const kinds = ['rest', 'mcp', 'run', 'registry', 'other'] as const;
type Kind = (typeof kinds)[number];

/** `left`: the client disconnected before the response began. */
const statuses = ['1xx', '2xx', '3xx', '4xx', '5xx', 'left'] as const;

const registry = /^\/(?:servers|skills|namespaces|accounts)(?:[/?]|$)/;
const mcp = /^\/connect\/[^/?]+\/(?:[^/?]+\/mcp|\.mcp)\/?(?:\?|$)/;

/** Returns the kind of a path, from a closed set, since paths contain names that tenants choose. */
export function kindOf(url: string): Kind {
  if (url.startsWith('/connect/')) return mcp.test(url) ? 'mcp' : 'rest';
  if (url.startsWith('/run/')) return 'run';
  return registry.test(url) ? 'registry' : 'other';
}

@Injectable()
export class HttpMeter {
  private readonly requests: LabeledCounter<'kind' | 'status'>;
  private readonly durations: Durations<'kind'>;

  constructor(metrics: Metrics) {
    const help = 'Finished requests, by kind and status.';
    this.requests = metrics.labeledCounter('slipway_http_requests_total', help, { kind: kinds, status: statuses });
    this.durations = metrics.durations(
      'slipway_http_request_duration_seconds',
      'Time from the head of a request to the end of its response. Without GET of event streams, which last.',
      { kind: kinds },
    );
  }

  /** Begins a measurement when the head is read; `request.url` is canonical. */
  begin(request: IncomingMessage, response: ServerResponse): void {
    const startedAt = performance.now();
    const url = request.url ?? '';
    response.on('close', () => {
      const kind = kindOf(url);
      const { headersSent, statusCode } = response;
      const status = headersSent ? (statuses[Math.floor(statusCode / 100) - 1] ?? '5xx') : 'left';
      this.requests.inc({ kind, status });
      const isStream = request.method === 'GET' && namesType(request.headers.accept, 'text/event-stream');
      if (!isStream) this.durations.observe((performance.now() - startedAt) / 1_000, { kind });
    });
  }
}
