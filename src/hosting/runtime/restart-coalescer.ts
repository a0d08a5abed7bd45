import { createHmac, randomBytes } from 'node:crypto';
import type { ProgramRef, ProgramValues } from '../hosting.types.js';
import type { Programs } from '../programs.js';

/** Of this process only: what it makes of secrets says nothing to whoever reads it elsewhere. */
const DIGEST_KEY = randomBytes(32);

/** Stands for what a program is given beside its code, so that no secret is kept to compare with. */
export function digestOf({ secrets, egressAllow }: ProgramValues): string {
  const sorted = Object.entries(secrets).sort(([a], [b]) => (a < b ? -1 : 1));
  return createHmac('sha256', DIGEST_KEY)
    .update(JSON.stringify([sorted, egressAllow]))
    .digest('base64url');
}

/**
 * True when a program would be started with other values now than it was, or nobody can say: one that goes on with a
 * secret that was taken away is worse than one that is started in vain.
 */
export async function isOutdated(programs: Programs, ref: ProgramRef, digest: string | null): Promise<boolean> {
  const values = await programs
    .of(ref.kind)
    .valuesOf(ref)
    .catch(() => null);
  return values === null || digestOf(values) !== digest;
}

interface Round {
  done: Promise<void>;
  /** Begins when this one is over; all who asked meanwhile share it. */
  next: Promise<void> | null;
}

/** Renews each owner's programs once at a time: changes that come meanwhile are one more round, however many they are. */
export class RestartCoalescer {
  private readonly rounds = new Map<string, Round>();

  /** Resolves when a round is over that began after the call. @param renew never rejects */
  run(ownerId: string, renew: () => Promise<void>): Promise<void> {
    const round = this.rounds.get(ownerId);
    if (!round) return this.begin(ownerId, renew);
    return (round.next ??= round.done.then(() => this.begin(ownerId, renew)));
  }

  private begin(ownerId: string, renew: () => Promise<void>): Promise<void> {
    const round: Round = { done: renew(), next: null };
    this.rounds.set(ownerId, round);
    void round.done.then(() => {
      if (!round.next) this.rounds.delete(ownerId);
    });
    return round.done;
  }
}
