import type { Invocation, InvocationPiece } from './invocation.types.js';

/** Invocations that wait for the queue at most, and those of one server: beyond it they are dropped and counted. */
export const WAITING_MAX = 50_000;
export const WAITING_OF_ONE_MAX = WAITING_MAX / 4;

/** Characters that wait at most, and those of one server, so that large invocations cannot take the memory either. */
const WAITING_CHARS_MAX = 64 * 1024 * 1024;
export const WAITING_CHARS_OF_ONE_MAX = WAITING_CHARS_MAX / 4;

/** What an invocation takes beside its texts. */
const BARE_CHARS = 400;

/** Pieces of one invocation that wait at most. */
const PIECES_MAX = 1_000;

/** What came of one invocation since the last flush: its record, pieces, or both. */
export interface Gathered {
  id: string;
  serverId: string;
  record: Invocation | null;
  pieces: InvocationPiece[];
  chars: number;
}

/** Takes invocations as they come, in memory, and brings the pieces of each together. Bounded; counts what it drops. */
export class InvocationBuffer {
  private readonly waiting = new Map<string, Gathered>();
  private readonly waitingOf = new Map<string, { count: number; chars: number }>();
  private chars = 0;
  /** Records and pieces that found no room. */
  dropped = 0;

  /** Invocations that wait. */
  get size(): number {
    return this.waiting.size;
  }

  record(invocation: Invocation): void {
    const gathered = this.room(invocation, charsOf(invocation) + BARE_CHARS);
    if (gathered) gathered.record ??= invocation;
  }

  append(piece: InvocationPiece): void {
    const gathered = this.room(piece, charsOf(piece));
    if (gathered) gathered.pieces.push(piece);
  }

  /** Takes out the oldest, `countMax` and about `charsMax` characters at most, but one if there is one. */
  take(countMax: number, charsMax: number): Gathered[] {
    const taken: Gathered[] = [];
    let chars = 0;
    for (const gathered of this.waiting.values()) {
      chars += gathered.chars;
      if (taken.length === countMax || (taken.length > 0 && chars > charsMax)) break;
      taken.push(gathered);
      this.remove(gathered);
    }
    return taken;
  }

  private room({ id, serverId }: { id: string; serverId: string }, chars: number): Gathered | null {
    const known = this.waiting.get(id);
    const of = this.waitingOf.get(serverId) ?? { count: 0, chars: 0 };
    const isFull = known
      ? known.pieces.length >= PIECES_MAX || known.serverId !== serverId
      : this.waiting.size >= WAITING_MAX || of.count >= WAITING_OF_ONE_MAX;
    if (isFull || this.chars + chars > WAITING_CHARS_MAX || of.chars + chars > WAITING_CHARS_OF_ONE_MAX) {
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

  private remove({ id, serverId, chars }: Gathered): void {
    this.waiting.delete(id);
    this.chars -= chars;
    const of = this.waitingOf.get(serverId);
    if (!of) return;
    of.count -= 1;
    of.chars -= chars;
    if (of.count === 0) this.waitingOf.delete(serverId);
  }
}

/** All texts that others wrote, also those of which little is kept: they wait whole. */
function charsOf(one: Partial<Invocation> & Pick<InvocationPiece, 'lines' | 'exceptions'>): number {
  const { payload, lines, exceptions } = one;
  let chars = lengthOf([one.method, one.url, one.rpcMethod, one.toolName, payload?.arguments, payload?.result]);
  for (const { level, message } of lines) chars += lengthOf([level, message]) + 50;
  for (const { name, message } of exceptions) chars += lengthOf([name, message]) + 50;
  return chars;
}

function lengthOf(texts: unknown[]): number {
  return texts.reduce<number>((sum, text) => sum + (typeof text === 'string' ? text.length : 0), 0);
}
