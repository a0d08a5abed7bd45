import { createHmac, randomBytes } from 'node:crypto';
import type { ProgramRef, ProgramValues } from '../hosting.types.js';
import type { ProgramOwners } from '../hosting.js';

/** Key of digests, random per process, so that digests reveal nothing about secrets elsewhere. */
const DIGEST_KEY = randomBytes(32);

export function digestOf({ secrets, egressAllow }: ProgramValues): string {
  const sorted = Object.entries(secrets).sort(([a], [b]) => (a < b ? -1 : 1));
  return createHmac('sha256', DIGEST_KEY)
    .update(JSON.stringify([sorted, egressAllow]))
    .digest('base64url');
}

/**
 * Returns true if secrets or egress rules changed since the start; even when unknown, since restarting is safer than
 * keeping a revoked secret.
 */
export async function isOutdated(programs: ProgramOwners, ref: ProgramRef, digest: string | null): Promise<boolean> {
  const values = await programs
    .ownerOf(ref.kind)
    .valuesOf(ref)
    .catch(() => null);
  return values === null || digestOf(values) !== digest;
}

interface Round {
  done: Promise<void>;
  next: Promise<void> | null;
}

/** Runs one renewal per owner at a time; calls during a run share the next one. */
export class RestartCoalescer {
  private readonly rounds = new Map<string, Round>();

  /** Resolves after a run that began after the call. @param renew never rejects */
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
