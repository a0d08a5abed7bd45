import { createHash } from 'node:crypto';
import fc, { type Arbitrary } from 'fast-check';

/** Draws a value of an arbitrary. */
export type Draw = <T>(arbitrary: Arbitrary<T>) => T;

/** Everything that is drawn follows from the seed: the same text, the same values on every machine. */
export function drawFrom(seed: string): Draw {
  const number = createHash('sha256').update(seed).digest().readInt32BE();
  const [generator] = fc.sample(fc.gen(), { seed: number, numRuns: 1, unbiased: true });
  return (arbitrary) => generator(() => arbitrary);
}

/** True in so many of a hundred draws. */
export const chance = (percent: number): Arbitrary<boolean> => fc.nat(99).map((number) => number < percent);

/** An arbitrary of several, as often as its weight says. */
export function weighted<T>(...entries: [weight: number, arbitrary: Arbitrary<T>][]): Arbitrary<T> {
  return fc.oneof(...entries.map(([weight, arbitrary]) => ({ weight, arbitrary })));
}

export const bytes = (maxLength: number): Arbitrary<Buffer> =>
  fc.uint8Array({ maxLength, size: 'max' }).map((array) => Buffer.from(array));

/** The beginning of a text or of bytes. */
export const cut = <T extends { length: number; slice(start: number, end: number): T }>(whole: T): Arbitrary<T> =>
  fc.nat(whole.length).map((end) => whole.slice(0, end));
