import type { TraceLine } from '../hosting.types.js';

/** Limit of waiting lines; the oldest is dropped first. */
export const WAITING_MAX = 2_000;

/** Limit of their characters. */
const WAITING_CHARS_MAX = 1_048_576;

/** Maximum difference between the times that pipe and tail record for a line. Measured: up to 3 ms. */
const SAME_TIME_MS = 5;

interface Waiting {
  line: TraceLine;
  key: string;
  time: number;
}

/**
 * Printed lines that wait for the tail to name their request. A request may print 80,000 lines meanwhile, so lines are
 * indexed by text and by time.
 */
export class WaitingLines {
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

  /**
   * Removes the oldest line with the same text, otherwise one of the same level and time: output outside of the
   * prelude's console, such as `console.table`, is formatted differently by pipe and tail. False without a match.
   */
  take(line: TraceLine): boolean {
    const time = Math.floor(line.at / SAME_TIME_MS);
    const near = [time, time - 1, time + 1].map((one) => this.byTime.get(timeKey(line, one)));
    for (const found of [this.byKey.get(keyOf(line)), ...near]) {
      if (!found) continue;
      this.remove(firstOf(found));
      return true;
    }
    return false;
  }

  /** Removes and returns all, oldest first. */
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

/** Key of a line; long lines by their beginning and length. */
export function keyOf({ level, message }: TraceLine): string {
  return `${level} ${message.length} ${message.slice(0, 256)}`;
}

function timeKey({ level }: TraceLine, time: number): string {
  return `${level} ${time}`;
}

function addTo(map: Map<string, Set<Waiting>>, key: string, waiting: Waiting): void {
  const found = map.get(key);
  if (found) found.add(waiting);
  else map.set(key, new Set([waiting]));
}

function removeFrom(map: Map<string, Set<Waiting>>, key: string, waiting: Waiting): void {
  const found = map.get(key);
  found?.delete(waiting);
  if (found?.size === 0) map.delete(key);
}

function firstOf(waiting: Set<Waiting>): Waiting {
  const [first] = waiting;
  return first;
}
