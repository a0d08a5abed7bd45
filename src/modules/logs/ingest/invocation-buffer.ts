import type { ConnectionCall, Invocation } from '../invocation.types.js';

/** A part of the server's or the connection's view of an invocation. */
export type LogPart = Invocation | ConnectionCall;

/** Maximum number of characters that wait for the database, of which one owner gets at most a quarter. More is dropped and counted. */
export const WAITING_CHARS_MAX = 64 * 1024 * 1024;

/** Characters that are merged in one turn of the event loop: about 1 ms of work. */
export const CHARS_AT_ONCE = 32 * 1024;

/** Memory of a part, and of a line or an exception, in addition to its strings, as characters. */
const BARE_CHARS = 400;
const BARE_ENTRY_CHARS = 40;

/** The parts of one view of an invocation since the last flush. */
export interface PendingInvocation {
  key: string;
  owner: string;
  parts: LogPart[];
  chars: number;
}

/**
 * Collects parts of invocations in memory, by invocation and view. Limited per server and connection; counts the
 * dropped parts.
 */
export class InvocationBuffer {
  private readonly waiting = new Map<string, PendingInvocation>();
  private readonly charsOfOwners = new Map<string, number>();
  private chars = 0;
  /** Parts that were dropped since the process started. */
  dropped = 0;

  get size(): number {
    return this.waiting.size;
  }

  /** Adds a part; drops and counts it if there is no room, or another owner has the invocation. */
  add(part: LogPart): void {
    const key = keyOf(part);
    const owner = 'serverId' in part ? part.serverId : part.connectionId;
    const chars = charsOf(part);
    const pending = this.waiting.get(key) ?? { key, owner, parts: [], chars: 0 };
    const ofOwner = (this.charsOfOwners.get(owner) ?? 0) + chars;
    const isTooMuch = this.chars + chars > WAITING_CHARS_MAX || ofOwner > WAITING_CHARS_MAX / 4;
    if (pending.owner !== owner || isTooMuch) {
      this.dropped += 1;
      return;
    }
    if (pending.parts.length === 0) this.waiting.set(key, pending);
    this.charsOfOwners.set(owner, ofOwner);
    pending.chars += chars;
    this.chars += chars;
    pending.parts.push(part);
  }

  /** Removes and returns the oldest: at most `sizeMax`, and about `charsMax` characters unless the first is longer. */
  removeOldest(charsMax: number, sizeMax: number): PendingInvocation[] {
    const batch: PendingInvocation[] = [];
    let total = 0;
    for (const pending of this.waiting.values()) {
      const { key, owner, chars } = pending;
      total += chars;
      if (batch.length === sizeMax || (batch.length > 0 && total > charsMax)) break;
      batch.push(pending);
      this.waiting.delete(key);
      this.chars -= chars;
      const charsLeft = (this.charsOfOwners.get(owner) ?? 0) - chars;
      if (charsLeft > 0) this.charsOfOwners.set(owner, charsLeft);
      else this.charsOfOwners.delete(owner);
    }
    return batch;
  }
}

/** Returns the key of an id and a view: both views of an invocation have its id. */
function keyOf(part: LogPart): string {
  return 'serverId' in part ? part.id : `call ${part.id}`;
}

/** Counts strings in full, even those that are cut later: they wait uncut. */
export function charsOf(part: LogPart): number {
  const { method, url, rpcMethod, toolName } = part;
  let chars = BARE_CHARS + lengthOf([method, url, rpcMethod, toolName]);
  if ('serverId' in part) chars += lengthOf([part.payload?.arguments, part.payload?.result]);
  for (const { level, message } of part.lines) chars += lengthOf([level, message]) + BARE_ENTRY_CHARS;
  for (const { name, message } of part.exceptions) chars += lengthOf([name, message]) + BARE_ENTRY_CHARS;
  return chars;
}

function lengthOf(values: unknown[]): number {
  return values.reduce<number>((sum, text) => sum + (typeof text === 'string' ? text.length : 0), 0);
}
