import type { Invocation, InvocationPiece } from '../invocation.types.js';

/** Invocations that wait for the queue at most, and those of one server: beyond it they are dropped and counted. */
export const WAITING_MAX = 50_000;
export const WAITING_OF_ONE_MAX = WAITING_MAX / 4;

/** Characters that wait at most, and those of one server, so that large invocations cannot take the memory either. */
const WAITING_CHARS_MAX = 64 * 1024 * 1024;
export const WAITING_CHARS_OF_ONE_MAX = WAITING_CHARS_MAX / 4;

/** What an invocation takes beside its texts, and what a line or an exception does: 1 MB of the shortest of them fits. */
const BARE_CHARS = 400;
const BARE_ENTRY_CHARS = 40;

/** Pieces of one invocation that wait at most. */
const PIECES_MAX = 1_000;

/** What came of one invocation since the last flush: its record, pieces, or both. */
export interface PendingInvocation {
  id: string;
  serverId: string;
  record: Invocation | null;
  pieces: InvocationPiece[];
  chars: number;
}

/** Takes invocations as they come, in memory, and brings the pieces of each together. Bounded; counts what it drops. */
export class InvocationBuffer {
  private readonly waiting = new Map<string, PendingInvocation>();
  private readonly waitingOf = new Map<string, { count: number; chars: number }>();
  private chars = 0;
  /** Records and pieces that found no room. */
  dropped = 0;

  /** Invocations that wait. */
  get size(): number {
    return this.waiting.size;
  }

  /** Whether all of these, of one server, would be taken if they came now. */
  hasRoomFor(serverId: string, given: readonly (Invocation | InvocationPiece)[]): boolean {
    const added = new Set<string>();
    let chars = 0;
    for (const one of given) {
      const known = this.waiting.get(one.id);
      if (known && isClosed(known, one)) return false;
      if (!known) added.add(one.id);
      chars += charsOf(one);
    }
    return this.isRoom(this.waitingOf.get(serverId), added.size, chars);
  }

  record(invocation: Invocation): void {
    const gathered = this.roomOf(invocation);
    if (gathered) gathered.record ??= invocation;
  }

  append(piece: InvocationPiece): void {
    const gathered = this.roomOf(piece);
    if (gathered) gathered.pieces.push(piece);
  }

  /** Takes out the oldest, `countMax` and about `charsMax` characters at most, but one if there is one. */
  take(countMax: number, charsMax: number): PendingInvocation[] {
    const taken: PendingInvocation[] = [];
    let chars = 0;
    for (const gathered of this.waiting.values()) {
      chars += gathered.chars;
      if (taken.length === countMax || (taken.length > 0 && chars > charsMax)) break;
      taken.push(gathered);
      this.remove(gathered);
    }
    return taken;
  }

  /** Where one is gathered; null, and it is counted as dropped, when there is no room for it. */
  private roomOf(one: Invocation | InvocationPiece): PendingInvocation | null {
    const { id, serverId } = one;
    const known = this.waiting.get(id);
    const of = this.waitingOf.get(serverId) ?? { count: 0, chars: 0 };
    const chars = charsOf(one);
    if ((known && isClosed(known, one)) || !this.isRoom(of, known ? 0 : 1, chars)) {
      this.dropped += 1;
      return null;
    }
    const gathered = known ?? { id, serverId, record: null, pieces: [], chars: 0 };
    if (!known) {
      this.waiting.set(id, gathered);
      this.waitingOf.set(serverId, of);
      of.count += 1;
    }
    of.chars += chars;
    gathered.chars += chars;
    this.chars += chars;
    return gathered;
  }

  private isRoom(of = { count: 0, chars: 0 }, count: number, chars: number): boolean {
    return (
      this.waiting.size + count <= WAITING_MAX &&
      of.count + count <= WAITING_OF_ONE_MAX &&
      this.chars + chars <= WAITING_CHARS_MAX &&
      of.chars + chars <= WAITING_CHARS_OF_ONE_MAX
    );
  }

  private remove({ id, serverId, chars }: PendingInvocation): void {
    this.waiting.delete(id);
    this.chars -= chars;
    const of = this.waitingOf.get(serverId);
    if (!of) return;
    of.count -= 1;
    of.chars -= chars;
    if (of.count === 0) this.waitingOf.delete(serverId);
  }
}

/** Takes no more of this: it has many pieces already, or is another server's. */
function isClosed({ pieces, serverId }: PendingInvocation, one: Invocation | InvocationPiece): boolean {
  return pieces.length >= PIECES_MAX || serverId !== one.serverId;
}

/** All texts that others wrote, also those of which little is kept: they wait whole. */
function charsOf(one: Invocation | InvocationPiece): number {
  let chars = 'method' in one ? BARE_CHARS + charsOfRecord(one) : 0;
  for (const { level, message } of one.lines) chars += lengthOf([level, message]) + BARE_ENTRY_CHARS;
  for (const { name, message } of one.exceptions) chars += lengthOf([name, message]) + BARE_ENTRY_CHARS;
  return chars;
}

function charsOfRecord({ method, url, rpcMethod, toolName, payload }: Invocation): number {
  return lengthOf([method, url, rpcMethod, toolName, payload?.arguments, payload?.result]);
}

function lengthOf(texts: unknown[]): number {
  return texts.reduce<number>((sum, text) => sum + (typeof text === 'string' ? text.length : 0), 0);
}
