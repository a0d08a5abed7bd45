import { INVOCATION_HEADER } from '../../hosting.types.js';
import type { TailItem } from '../trace-sink.js';

interface TraceItem {
  truncated?: boolean;
  outcome: string;
  logs: { timestamp: number; level: string; message: unknown }[];
  exceptions: { timestamp: number; name: string; message: string; stack?: string }[];
  event?: { request?: { headers: Record<string, string> } } | null;
}

/** Reports console lines and exceptions to the supervisor. Runs outside the program, which cannot access it. */
export default {
  async tail(items: TraceItem[], env: { SINK: { fetch(url: string, init: RequestInit): Promise<Response> } }) {
    const reports = items
      .map(toItem)
      .filter((item) => item.hasThrown || item.isTruncated || item.lines.length > 0 || item.exceptions.length > 0);
    if (reports.length === 0) return;
    const answer = await env.SINK.fetch('http://sink/', { method: 'POST', body: JSON.stringify(reports) });
    await answer.body?.cancel();
  },
};

function toItem(item: TraceItem): TailItem {
  return {
    id: item.event?.request?.headers[INVOCATION_HEADER] ?? '',
    hasThrown: item.outcome === 'exception',
    isTruncated: item.truncated === true,
    lines: item.logs.map(({ timestamp, level, message }) => [timestamp, level, textOf(message)]),
    exceptions: item.exceptions.map(({ timestamp, name, message, stack }) => ({
      at: timestamp,
      name,
      message,
      ...(stack === undefined ? {} : { stack }),
    })),
  };
}

/** Joins a line's arguments: the prelude's console creates one string per line, a replaced console might not. */
function textOf(message: unknown): string {
  const parts = Array.isArray(message) ? message : [message];
  return parts.map((part) => (typeof part === 'string' ? part : JSON.stringify(part))).join(' ');
}
