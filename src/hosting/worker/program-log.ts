import type { ProgramRef, Trace, TraceException, TraceLine } from '../hosting.types.js';
import type { InFlight } from './in-flight-requests.js';
import type { TailItem } from './tail-item.js';
import { keyOf, WAITING_MAX, WaitingLines } from './waiting-lines.js';
import { levelOf, withoutOurs } from './workerd-output.js';

/** Added to the size of each line, so that empty lines count towards the limit. */
const LINE_BYTES = 16;

/** Limit of invocations whose bytes are counted; the oldest is forgotten. */
const COUNTED_MAX = 2_000;

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * Merges the two sources of a program's console. The tail names the request of a line, but reports only when the
 * request has ended; the pipe delivers at once. A line of the pipe waits for the tail; lines that still wait at the
 * exit belong to requests that ended with the process.
 */
export class ProgramLog {
  private readonly printed = new WaitingLines();
  /** Counts lines that the tail reported before the pipe. */
  private readonly reported = new Map<string, number>();
  private readonly bytes = new Map<string, number>();

  constructor(
    private readonly ref: ProgramRef,
    private readonly inFlight: InFlight,
    private readonly logBytes: number,
    private readonly onTrace: (trace: Trace) => void,
  ) {}

  /** Receives a printed line. */
  print(line: TraceLine): void {
    const key = keyOf(line);
    const reported = this.reported.get(key);
    if (reported !== undefined) {
      if (reported > 1) this.reported.set(key, reported - 1);
      else this.reported.delete(key);
      return;
    }
    this.printed.add(line);
  }

  /** Adds a line of the service itself. */
  add(line: TraceLine): void {
    this.handOn(this.inFlight.only ?? '', [line], []);
  }

  /** Receives a report of the tail. */
  report(items: TailItem[]): void {
    for (const item of items) {
      const lines = item.lines.map(([at, level, message]): TraceLine => ({
        at,
        level: levelOf(level),
        message,
      }));
      for (const line of lines) this.take(line);
      const exceptions = item.exceptions.map(({ at, name, message, stack }) => ({
        at,
        name: String(name),
        message,
        ...(typeof stack === 'string' ? { stack: withoutOurs(stack) } : {}),
      }));
      const id = UUID.test(item.id) && this.inFlight.knows(item.id) ? item.id : '';
      this.handOn(id, lines, once(exceptions), { hasThrown: item.hasThrown, isTruncated: item.isTruncated });
    }
  }

  /** Reports the lines printed so far without a request, after the module was loaded. */
  loaded(): void {
    const lines = this.printed.takeAll();
    if (lines.length > 0) this.handOn('', lines, []);
  }

  /** Reports all waiting lines after the process, and thus the tail, has ended. */
  close(): void {
    const lines = this.printed.takeAll();
    if (lines.length > 0) this.handOn(this.inFlight.onlyLost ?? '', lines, []);
  }

  /** Removes a line from the waiting ones, or records that it need not wait. */
  private take(line: TraceLine): void {
    if (this.printed.take(line)) return;
    const key = keyOf(line);
    this.reported.set(key, (this.reported.get(key) ?? 0) + 1);
    if (this.reported.size > WAITING_MAX) this.reported.delete(firstOf(this.reported));
  }

  private handOn(
    invocationId: string,
    lines: TraceLine[],
    exceptions: TraceException[],
    { hasThrown = false, isTruncated = false } = {},
  ): void {
    const kept = this.withinBytes(invocationId, lines, exceptions);
    this.onTrace({
      ref: this.ref,
      invocationId,
      lines: kept.lines,
      exceptions: kept.exceptions,
      ...(hasThrown ? { outcome: 'exception' } : {}),
      ...(isTruncated || kept.isTruncated ? { isTruncated: true } : {}),
    });
  }

  /** Drops lines above the limit of a request, with one line that says so. */
  private withinBytes(id: string, lines: TraceLine[], exceptions: TraceException[]) {
    let used = this.bytes.get(id) ?? 0;
    const before = used;
    const fits = (text: string) => {
      used += Buffer.byteLength(text) + LINE_BYTES;
      return used <= this.logBytes;
    };
    const thrown = exceptions.filter(({ message, stack }) => fits(message + (stack ?? '')));
    const kept = lines.filter(({ message }) => fits(message));
    const isTruncated = kept.length < lines.length || thrown.length < exceptions.length;
    if (isTruncated && before <= this.logBytes) {
      kept.push({ at: lines.at(-1)?.at ?? Date.now(), level: 'warn', message: this.cutLine });
    }
    this.bytes.delete(id);
    this.bytes.set(id, used);
    if (this.bytes.size > COUNTED_MAX) this.bytes.delete(firstOf(this.bytes));
    return { lines: kept, exceptions: thrown, isTruncated };
  }

  private get cutLine(): string {
    return `Lines were left out: one request may log ${Math.floor(this.logBytes / 1_024)} KB.`;
  }
}

/** Removes duplicates: an exception that is both thrown and reported occurs twice with one time. */
function once(exceptions: TraceException[]): TraceException[] {
  const seen = new Set<string>();
  return exceptions.filter(({ at, name, message }) => {
    const key = `${at} ${name} ${message}`;
    return !seen.has(key) && seen.add(key);
  });
}

function firstOf(map: Map<string, unknown>): string {
  const [first] = map.keys();
  return first;
}
