import type { ProgramRef, Trace, TraceException, TraceLine } from '../hosting.types.js';
import type { InFlight } from './in-flight-requests.js';
import type { TailItem } from './tail-item.js';
import { keyOf, WAITING_MAX, WaitingLines } from './waiting-lines.js';
import { levelOf, withoutOurs } from './workerd-output.js';

/** What a line counts besides its text: a request that prints nothing but line ends is held to its limit too. */
const LINE_BYTES = 16;

/** Invocations whose bytes are counted at once; the oldest is forgotten. */
const COUNTED_MAX = 2_000;

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * Joins the two ways a program's console reaches us. The tail knows which request printed a line, but tells it only when
 * the request is over; the pipe has it at once. So a line of the pipe waits for the tail, and what still waits when the
 * process is gone was printed by requests that died with it.
 */
export class ProgramLog {
  private readonly printed = new WaitingLines();
  /** And the other way round: how often the tail told a line that was not printed yet. */
  private readonly told = new Map<string, number>();
  private readonly bytes = new Map<string, number>();

  constructor(
    private readonly ref: ProgramRef,
    private readonly inFlight: InFlight,
    private readonly logBytes: number,
    private readonly onTrace: (trace: Trace) => void,
  ) {}

  /** The console printed a line. */
  print(line: TraceLine): void {
    const key = keyOf(line);
    const told = this.told.get(key);
    if (told !== undefined) {
      if (told > 1) this.told.set(key, told - 1);
      else this.told.delete(key);
      return;
    }
    this.printed.add(line);
  }

  /** The service itself says something about what the program does. */
  add(line: TraceLine): void {
    this.handOn(this.inFlight.only ?? '', [line], []);
  }

  /** The tail tells of requests. */
  tell(items: TailItem[]): void {
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

  /** What was printed so far belongs to no request: the module was loading. */
  loaded(): void {
    const lines = this.printed.takeAll();
    if (lines.length > 0) this.handOn('', lines, []);
  }

  /** The process is gone, and the tail with it. */
  close(): void {
    const lines = this.printed.takeAll();
    if (lines.length > 0) this.handOn(this.inFlight.onlyLost ?? '', lines, []);
  }

  /** The tail told a line, so it need not wait any more, or must not when it comes. */
  private take(line: TraceLine): void {
    if (this.printed.take(line)) return;
    const key = keyOf(line);
    this.told.set(key, (this.told.get(key) ?? 0) + 1);
    if (this.told.size > WAITING_MAX) this.told.delete(firstOf(this.told));
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

  /** Leaves out what is more than a request may say, and says so once. */
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

/** An exception that is both thrown and reported comes twice, with one time. */
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
