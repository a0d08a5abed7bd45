/** Pseudo-random numbers, equal for equal seeds on every machine. Not for secrets. */
export class SeededRandom {
  private state: number;

  constructor(seed: string) {
    this.state = hash(seed);
  }

  /** At least 0, less than 1. Mulberry32, whose period of 2^32 is far beyond one value's needs. */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let mixed = this.state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** A whole number from `min` to `max`, both included. */
  between(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  /** One of `choices`, which must not be empty. */
  pick<T>(choices: ArrayLike<T>): T {
    return choices[this.between(0, choices.length - 1)];
  }

  /** Random hexadecimal digits. */
  hex(digits: number): string {
    return Array.from({ length: digits }, () => this.between(0, 15).toString(16)).join('');
  }

  /** A UUID in the form of version 4. */
  uuid(): string {
    const variant = this.pick('89ab');
    return `${this.hex(8)}-${this.hex(4)}-4${this.hex(3)}-${variant}${this.hex(3)}-${this.hex(12)}`;
  }
}

/** FNV-1a over UTF-16 code units, with a finalizer that spreads the last ones. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return value ^ (value >>> 16);
}
