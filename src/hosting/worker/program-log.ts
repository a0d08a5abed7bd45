/**
 * The console of a module, merged from two sources. workerd's tail names the request of each line, but reports only
 * when the request has finished; the pipe of standard output delivers immediately, even if the process dies.
 *
 * A line of the pipe waits until the tail reports the same text, or one of the same level within 5 to 10 ms, since
 * output such as `console.table` is formatted differently. Lines that still wait at the exit belong to the only request
 * lost with the process, otherwise to none.
 *
 * An id that the tail reports and no request had is made up by the code; its lines belong to no request.
 */
import { growingLru } from '../../platform/limits/growing-lru.js';
import {
  cutLine,
  ENDED_MAX,
  LINE_BYTES,
  type ProgramRef,
  type Trace,
  type TraceException,
  type TraceLine,
} from '../hosting.types.js';
import type { InFlight } from './in-flight-requests.js';
import type { TailItem } from './trace-sink.js';
import { levelOf, withoutOurs } from './workerd-process.js';

/** Maximum number of waiting lines, of which the oldest is dropped first. */
const WAITING_MAX = 2_000;

const WAITING_CHARS_MAX = 1_048_576;

/**
 * A line also matches those of the next slots. Measured difference of the times that both sources record for a line: up
 * to 3 ms.
 */
const SAME_TIME_MS = 5;

interface Waiting {
  line: TraceLine;
  key: string;
  time: number;
}

class WaitingLines {
  private readonly all = new Set<Waiting>();
  private readonly byKey = new Map<string, Set<Waiting>>();
  private readonly byTime = new Map<string, Set<Waiting>>();
  private chars = 0;

  add(line: TraceLine): void {
    const waiting = { line, key: keyOf(line), time: Math.floor(line.at / SAME_TIME_MS) };
    this.all.add(waiting);
    addTo(this.byKey, waiting.key, waiting);
    addTo(this.byTime, timeKey(line, waiting.time), waiting);
    this.chars += line.message.length;
    while (this.all.size > WAITING_MAX || this.chars > WAITING_CHARS_MAX) this.remove(firstOf(this.all));
  }

  /** Removes the oldest line with the same text, otherwise one of the same level and time. False without a match. */
  removeMatch(line: TraceLine): boolean {
    const time = Math.floor(line.at / SAME_TIME_MS);
    const near = [time, time - 1, time + 1].map((slot) => this.byTime.get(timeKey(line, slot)));
    for (const candidates of [this.byKey.get(keyOf(line)), ...near]) {
      if (!candidates) continue;
      this.remove(firstOf(candidates));
      return true;
    }
    return false;
  }

  takeAll(): TraceLine[] {
    const lines = [...this.all].map(({ line }) => line);
    this.all.clear();
    this.byKey.clear();
    this.byTime.clear();
    this.chars = 0;
    return lines;
  }

  private remove(waiting: Waiting): void {
    this.all.delete(waiting);
    removeFrom(this.byKey, waiting.key, waiting);
    removeFrom(this.byTime, timeKey(waiting.line, waiting.time), waiting);
    this.chars -= waiting.line.message.length;
  }
}

export class ProgramLog {
  private readonly printed = new WaitingLines();
  private readonly reported = growingLru<number>(WAITING_MAX);
  private readonly bytes = growingLru<number>(ENDED_MAX);

  constructor(
    private readonly ref: ProgramRef,
    private readonly inFlight: InFlight,
    private readonly logBytes: number,
    private readonly onTrace: (trace: Trace) => void,
  ) {}

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

  add(line: TraceLine): void {
    this.emit(this.inFlight.onlyInFlight ?? '', [line], []);
  }

  report(items: TailItem[]): void {
    for (const item of items) {
      const lines = item.lines.map(([at, level, message]): TraceLine => ({ at, level: levelOf(level), message }));
      for (const line of lines) this.settleLine(line);
      const exceptions = item.exceptions.map(({ at, name, message, stack }) => ({
        at,
        name: String(name),
        message,
        ...(typeof stack === 'string' ? { stack: withoutOurs(stack) } : {}),
      }));
      const id = this.inFlight.isKnown(item.id) ? item.id : '';
      this.emit(id, lines, dedupe(exceptions), { hasThrown: item.hasThrown, isTruncated: item.isTruncated });
    }
  }

  reportLoad(): void {
    const lines = this.printed.takeAll();
    if (lines.length > 0) this.emit('', lines, []);
  }

  close(): void {
    const lines = this.printed.takeAll();
    if (lines.length > 0) this.emit(this.inFlight.onlyLost ?? '', lines, []);
  }

  private settleLine(line: TraceLine): void {
    if (this.printed.removeMatch(line)) return;
    const key = keyOf(line);
    this.reported.set(key, (this.reported.get(key) ?? 0) + 1);
  }

  private emit(
    invocationId: string,
    lines: TraceLine[],
    exceptions: TraceException[],
    { hasThrown = false, isTruncated = false } = {},
  ): void {
    const fitting = this.withinBytes(invocationId, lines, exceptions);
    this.onTrace({
      ref: this.ref,
      invocationId,
      lines: fitting.lines,
      exceptions: fitting.exceptions,
      ...(hasThrown ? { outcome: 'exception' } : {}),
      ...(isTruncated || fitting.isTruncated ? { isTruncated: true } : {}),
    });
  }

  private withinBytes(id: string, lines: TraceLine[], exceptions: TraceException[]) {
    let used = this.bytes.get(id) ?? 0;
    const before = used;
    const fits = (text: string) => {
      used += Buffer.byteLength(text) + LINE_BYTES;
      return used <= this.logBytes;
    };
    const thrown = exceptions.filter(({ message, stack }) => fits(message + (stack ?? '')));
    const fittingLines = lines.filter(({ message }) => fits(message));
    const isTruncated = fittingLines.length < lines.length || thrown.length < exceptions.length;
    if (isTruncated && before <= this.logBytes) {
      fittingLines.push({ at: lines.at(-1)?.at ?? Date.now(), level: 'warn', message: cutLine(this.logBytes) });
    }
    this.bytes.set(id, used);
    return { lines: fittingLines, exceptions: thrown, isTruncated };
  }
}

/** Removes duplicates: an exception that is both thrown and reported occurs twice with one time. */
function dedupe(exceptions: TraceException[]): TraceException[] {
  const keys = new Set<string>();
  return exceptions.filter(({ at, name, message }) => {
    const key = `${at} ${name} ${message}`;
    return !keys.has(key) && keys.add(key);
  });
}

function firstOf<T>(items: Set<T>): T {
  const [first] = items;
  return first;
}

/** Returns the key of a line; long lines are compared by their beginning and length. */
function keyOf({ level, message }: TraceLine): string {
  return `${level} ${message.length} ${message.slice(0, 256)}`;
}

function timeKey({ level }: TraceLine, time: number): string {
  return `${level} ${time}`;
}

function addTo(map: Map<string, Set<Waiting>>, key: string, waiting: Waiting): void {
  const lines = map.get(key);
  if (lines) lines.add(waiting);
  else map.set(key, new Set([waiting]));
}

function removeFrom(map: Map<string, Set<Waiting>>, key: string, waiting: Waiting): void {
  const lines = map.get(key);
  lines?.delete(waiting);
  if (lines?.size === 0) map.delete(key);
}
