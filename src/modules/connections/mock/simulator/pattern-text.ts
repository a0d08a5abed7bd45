import type { SeededRandom } from './sample-text.js';

/** Most repetitions beyond the minimum of an unbounded quantifier. */
const EXTRA_REPEATS_MAX = 3;

/** Longest text; a pattern that needs more is unsupported. */
const CHARS_MAX = 10_000;

/** A part of a pattern that is not supported: look-around, back references, character properties. */
class UnsupportedPatternError extends Error {}

const DIGITS = '0123456789';
const LETTERS = 'abcdefghijklmnopqrstuvwxyz';
const WORD = `${LETTERS}${LETTERS.toUpperCase()}${DIGITS}_`;
const PRINTABLE = Array.from({ length: 95 }, (_none, at) => String.fromCharCode(32 + at)).join('');

const classes: Record<string, string> = { d: DIGITS, w: `${LETTERS}${DIGITS}`, s: ' ' };
const literalEscapes: Record<string, string> = { n: '\n', r: '\r', t: '\t', f: '\f', v: '\v', 0: '\0' };

/** A text that a regular expression of JSON Schema is likely to match; null for an unsupported pattern. */
export function textOfPattern(pattern: string, random: SeededRandom): string | null {
  try {
    return new PatternWriter(pattern, random).write();
  } catch (error) {
    if (error instanceof UnsupportedPatternError) return null;
    throw error;
  }
}

/** Generates a text in one pass over the pattern. Anchors are ignored. */
class PatternWriter {
  private at = 0;
  private written = 0;

  constructor(
    private readonly pattern: string,
    private readonly random: SeededRandom,
  ) {}

  write(): string {
    const text = this.alternatives(0)();
    if (this.at < this.pattern.length) throw new UnsupportedPatternError();
    return text;
  }

  private alternatives(depth: number): () => string {
    if (depth > 50) throw new UnsupportedPatternError();
    const branches = [this.sequence(depth)];
    while (this.take('|')) branches.push(this.sequence(depth));
    return () => this.random.pick(branches)();
  }

  private sequence(depth: number): () => string {
    const parts: (() => string)[] = [];
    while (this.at < this.pattern.length && !'|)'.includes(this.peek())) {
      const part = this.atom(depth);
      parts.push(this.repeated(part));
    }
    return () => parts.map((part) => part()).join('');
  }

  private atom(depth: number): () => string {
    const char = this.next();
    if (char === '^' || char === '$') return () => '';
    if (char === '.') return this.charOf(WORD);
    if (char === '[') return this.charOf(this.set());
    if (char === '\\') return this.escape();
    if (char !== '(') return this.charOf(char);
    if (this.take('?') && !this.take(':')) throw new UnsupportedPatternError();
    const group = this.alternatives(depth + 1);
    if (!this.take(')')) throw new UnsupportedPatternError();
    return group;
  }

  private escape(): () => string {
    if (this.take('b') || this.take('B')) return () => '';
    return this.charOf(this.escaped());
  }

  /** The characters that the rest of an escape stands for. */
  private escaped(): string {
    const char = this.next();
    const chars = classes[char] ?? literalEscapes[char];
    if (chars === undefined && /[A-Za-z1-9]/.test(char)) throw new UnsupportedPatternError();
    return chars ?? char;
  }

  /** The characters that a bracket expression allows. */
  private set(): string {
    const isNegated = this.take('^');
    let chars = '';
    while (!this.take(']')) {
      const from = this.setMember();
      if (from.length === 1 && this.peek() === '-' && this.pattern[this.at + 1] !== ']') {
        this.at += 1;
        const to = this.setMember();
        chars += rangeOf(from, to);
      } else chars += from;
    }
    const allowed = isNegated ? [...PRINTABLE].filter((char) => !chars.includes(char)).join('') : chars;
    if (allowed === '') throw new UnsupportedPatternError();
    return allowed;
  }

  private setMember(): string {
    const char = this.next();
    return char === '\\' ? this.escaped() : char;
  }

  private repeated(part: () => string): () => string {
    const [min, max] = this.quantifier();
    if (min > CHARS_MAX) throw new UnsupportedPatternError();
    // A lazy quantifier.
    if (max > 1 || min !== 1) this.take('?');
    return () => {
      let text = '';
      for (let left = this.random.between(min, max); left > 0; left -= 1) {
        this.spend();
        text += part();
      }
      return text;
    };
  }

  private quantifier(): [number, number] {
    if (this.take('*')) return [0, EXTRA_REPEATS_MAX];
    if (this.take('+')) return [1, 1 + EXTRA_REPEATS_MAX];
    if (this.take('?')) return [0, 1];
    const counted = /^\{(\d+)(,(\d*))?\}/.exec(this.pattern.slice(this.at, this.at + 20));
    if (!counted) return [1, 1];
    this.at += counted[0].length;
    const min = Number(counted[1]);
    if (counted[2] === undefined) return [min, min];
    return [min, Math.min(counted[3] ? Number(counted[3]) : Infinity, min + EXTRA_REPEATS_MAX)];
  }

  private charOf(chars: string): () => string {
    return () => {
      this.spend();
      return this.random.pick(chars);
    };
  }

  private spend(): void {
    this.written += 1;
    if (this.written > CHARS_MAX) throw new UnsupportedPatternError();
  }

  private peek(): string {
    return this.pattern[this.at] ?? '';
  }

  private next(): string {
    const char = this.pattern[this.at];
    if (char === undefined) throw new UnsupportedPatternError();
    this.at += 1;
    return char;
  }

  private take(char: string): boolean {
    if (this.peek() !== char) return false;
    this.at += 1;
    return true;
  }
}

function rangeOf(from: string, to: string): string {
  const [first, last] = [from.charCodeAt(0), to.charCodeAt(0)];
  if (to.length !== 1 || last < first || last - first > 500) throw new UnsupportedPatternError();
  return Array.from({ length: last - first + 1 }, (_none, at) => String.fromCharCode(first + at)).join('');
}
