import type { ConnectionCall, Invocation } from '../invocation.types.js';

/** A part of the server's or the connection's view of an invocation. */
export type LogPart = Invocation | ConnectionCall;

/** Maximum number of rows that wait for the database, in all and of one owner. More are dropped and counted. */
export const WAITING_MAX = 50_000;
export const WAITING_OF_ONE_MAX = WAITING_MAX / 4;

/** Maximum total length of the texts that wait, in characters, in all and of one owner. */
const WAITING_CHARS_MAX = 64 * 1024 * 1024;
const WAITING_CHARS_OF_ONE_MAX = WAITING_CHARS_MAX / 4;

/** Memory of an invocation, a line and an exception besides their texts, as characters. */
const BARE_CHARS = 400;
const BARE_ENTRY_CHARS = 40;

/** Maximum number of parts of one invocation that wait. */
const PARTS_MAX = 1_000;

/** The parts of one view of an invocation that came since the last flush. */
export interface PendingInvocation {
  key: string;
  owner: string;
  parts: LogPart[];
  chars: number;
}

/** Collects parts of invocations in memory, by invocation and view. Bounded for each server and connection; counts what it drops. */
export class InvocationBuffer {
  private readonly waiting = new Map<string, PendingInvocation>();
  private readonly waitingOf = new Map<string, { count: number; chars: number }>();
  private chars = 0;
  /** Parts that were dropped since the process started. */
  dropped = 0;

  /** Number of invocations that wait. */
  get size(): number {
    return this.waiting.size;
  }

  /** True if `add` would drop none of these parts of one owner. */
  hasRoomFor(owner: string, parts: readonly LogPart[]): boolean {
    const added = new Set<string>();
    let chars = 0;
    for (const part of parts) {
      const waitingPart = this.waiting.get(keyOf(part));
      if (waitingPart && isClosed(waitingPart, part)) return false;
      if (!waitingPart) added.add(keyOf(part));
      chars += charsOf(part);
    }
    return this.fits(this.waitingOf.get(owner), added.size, chars);
  }

  /** Adds a part, or drops and counts it. */
  add(part: LogPart): void {
    const [key, owner] = [keyOf(part), ownerOf(part)];
    const waitingPart = this.waiting.get(key);
    const of = this.waitingOf.get(owner) ?? { count: 0, chars: 0 };
    const chars = charsOf(part);
    if ((waitingPart && isClosed(waitingPart, part)) || !this.fits(of, waitingPart ? 0 : 1, chars)) {
      this.dropped += 1;
      return;
    }
    const pending = waitingPart ?? { key, owner, parts: [], chars: 0 };
    if (!waitingPart) {
      this.waiting.set(key, pending);
      this.waitingOf.set(owner, of);
      of.count += 1;
    }
    of.chars += chars;
    pending.chars += chars;
    this.chars += chars;
    pending.parts.push(part);
  }

  /**
   * Removes and returns the oldest: at most `countMax`, and at most about `charsMax` characters unless the first is longer.
   */
  take(countMax: number, charsMax: number): PendingInvocation[] {
    const taken: PendingInvocation[] = [];
    let chars = 0;
    for (const pending of this.waiting.values()) {
      chars += pending.chars;
      if (taken.length === countMax || (taken.length > 0 && chars > charsMax)) break;
      taken.push(pending);
      this.remove(pending);
    }
    return taken;
  }

  private fits(of = { count: 0, chars: 0 }, count: number, chars: number): boolean {
    return (
      this.waiting.size + count <= WAITING_MAX &&
      of.count + count <= WAITING_OF_ONE_MAX &&
      this.chars + chars <= WAITING_CHARS_MAX &&
      of.chars + chars <= WAITING_CHARS_OF_ONE_MAX
    );
  }

  private remove({ key, owner, chars }: PendingInvocation): void {
    this.waiting.delete(key);
    this.chars -= chars;
    const of = this.waitingOf.get(owner);
    if (!of) return;
    of.count -= 1;
    of.chars -= chars;
    if (of.count === 0) this.waitingOf.delete(owner);
  }
}

/** The server or connection whose view a part belongs to. */
export function ownerOf(part: LogPart): string {
  return 'serverId' in part ? part.serverId : part.connectionId;
}

/** An id and a view: both views of an invocation have its id. */
function keyOf(part: LogPart): string {
  return 'serverId' in part ? part.id : `call ${part.id}`;
}

/** True if the invocation accepts no more parts, or belongs to another owner. */
function isClosed({ parts, owner }: PendingInvocation, part: LogPart): boolean {
  return parts.length >= PARTS_MAX || owner !== ownerOf(part);
}

/** Counts the whole texts, also those that are cut later: they wait whole. */
export function charsOf(part: LogPart): number {
  const { method, url, rpcMethod, toolName } = part;
  let chars = method == null ? 0 : BARE_CHARS;
  chars += lengthOf([method, url, rpcMethod, toolName]);
  if ('serverId' in part) chars += lengthOf([part.payload?.arguments, part.payload?.result]);
  for (const { level, message } of part.lines) chars += lengthOf([level, message]) + BARE_ENTRY_CHARS;
  for (const { name, message } of part.exceptions) chars += lengthOf([name, message]) + BARE_ENTRY_CHARS;
  return chars;
}

function lengthOf(texts: unknown[]): number {
  return texts.reduce<number>((sum, text) => sum + (typeof text === 'string' ? text.length : 0), 0);
}
