import type { TraceLine } from '../hosting.types.js';

/** Lines kept at once; the oldest goes first. */
export const WAITING_MAX = 2_000;

/** And characters of them: what a request says that dies with its process is kept up to here. */
const WAITING_CHARS_MAX = 1_048_576;

/** The pipe and the tail take the time of a line one after the other. Measured: up to 3 ms apart. */
const SAME_TIME_MS = 5;

interface Waiting {
  line: TraceLine;
  key: string;
  time: number;
}

/**
 * Printed lines that wait for the tail to tell whose they are. A request may print 80,000 lines while others wait, so each
 * is found by what it says, or by when it was printed, without looking at the rest.
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
   * Takes the oldest line that says the same, or else one of the same level and time: what does not go through the console
   * of the prelude, such as `console.table`, reads differently on the two ways. False when there is none.
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

  /** Takes all, the oldest first. */
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

/** Long lines are known by their beginning and their length. */
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
