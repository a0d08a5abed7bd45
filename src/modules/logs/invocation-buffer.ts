import type { Invocation, InvocationPiece } from './invocation.types.js';

/** Invocations that wait for the queue at most, and those of one server: beyond it they are dropped and counted. */
export const WAITING_MAX = 50_000;
export const WAITING_OF_ONE_MAX = WAITING_MAX / 4;

/** Characters that wait at most, so that large invocations cannot take the memory either. */
const WAITING_CHARS_MAX = 64 * 1024 * 1024;

/** What an invocation takes beside its texts. */
const BARE_CHARS = 500;

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
  private readonly waitingOf = new Map<string, number>();
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
    const waitingOf = this.waitingOf.get(serverId) ?? 0;
    const isFull = known
      ? known.pieces.length >= PIECES_MAX || known.serverId !== serverId
      : this.waiting.size >= WAITING_MAX || waitingOf >= WAITING_OF_ONE_MAX;
    if (isFull || this.chars + chars > WAITING_CHARS_MAX) {
      this.dropped += 1;
      return null;
    }
    const gathered = known ?? { id, serverId, record: null, pieces: [], chars: 0 };
    if (!known) {
      this.waiting.set(id, gathered);
      this.waitingOf.set(serverId, waitingOf + 1);
    }
    gathered.chars += chars;
    this.chars += chars;
    return gathered;
  }

  private remove({ id, serverId, chars }: Gathered): void {
    this.waiting.delete(id);
    this.chars -= chars;
    const left = (this.waitingOf.get(serverId) ?? 0) - 1;
    if (left > 0) this.waitingOf.set(serverId, left);
    else this.waitingOf.delete(serverId);
  }
}

function charsOf({ lines, exceptions, payload }: Partial<Invocation> & Pick<InvocationPiece, 'lines' | 'exceptions'>) {
  let chars = (payload?.arguments?.length ?? 0) + (payload?.result?.length ?? 0);
  for (const { message } of lines) chars += message.length + 50;
  for (const { message } of exceptions) chars += message.length + 50;
  return chars;
}
