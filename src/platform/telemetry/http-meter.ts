import type { IncomingMessage, ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import { Counts, Durations } from './figures.js';
import { Metrics } from './metrics.js';

/** Kind of a request. `registry`: servers, skills, namespaces, accounts. `other`: everything else, such as health. */
const kinds = ['rest', 'mcp', 'run', 'registry', 'other'] as const;
type Kind = (typeof kinds)[number];

/** How it was answered; `left`: its client was gone before the answer began. */
const statuses = ['1xx', '2xx', '3xx', '4xx', '5xx', 'left'] as const;
type Status = (typeof statuses)[number];

const registry = /^\/(?:servers|skills|namespaces|accounts)(?:[/?]|$)/;
const mcp = /^\/connect\/[^/?]+\/(?:[^/?]+\/mcp|\.mcp)\/?(?:\?|$)/;

/** Kind of the request at a canonical URL. A closed set, since paths hold names that tenants choose. */
export function kindOf(url: string): Kind {
  if (url.startsWith('/connect/')) return mcp.test(url) ? 'mcp' : 'rest';
  if (url.startsWith('/run/')) return 'run';
  return registry.test(url) ? 'registry' : 'other';
}

interface Cell {
  counts: Counts<Status>;
  durations: Durations;
}

/** Counts requests and the time they take. Costs one listener and two readings of the clock a request. */
@Injectable()
export class HttpMeter {
  private readonly cells = Object.fromEntries(
    kinds.map((kind) => [kind, { counts: new Counts<Status>('status', statuses), durations: new Durations() }]),
  ) as Record<Kind, Cell>;

  constructor(metrics: Metrics) {
    metrics.counter('slipway_http_requests_total', 'Requests that are over, by what they were for and status.', () =>
      kinds.flatMap((kind) => this.cells[kind].counts.samples({ kind })),
    );
    metrics.durations(
      'slipway_http_request_duration_seconds',
      'Time from the head of a request to the end of its answer. Without GET of event streams, which last.',
      kinds.map((kind) => ({ labels: { kind }, durations: this.cells[kind].durations })),
    );
  }

  /** Called when the head of a request is read; `request.url` is canonical. */
  begin(request: IncomingMessage, response: ServerResponse): void {
    const startedAt = performance.now();
    const url = request.url ?? '';
    response.on('close', () => {
      const cell = this.cells[kindOf(url)];
      cell.counts.add(statusOf(response));
      if (!isStream(request)) cell.durations.observe(performance.now() - startedAt);
    });
  }
}

function statusOf({ headersSent, statusCode }: ServerResponse): Status {
  return headersSent ? (statuses[Math.floor(statusCode / 100) - 1] ?? '5xx') : 'left';
}

function isStream({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && (headers.accept ?? '').includes('text/event-stream');
}
