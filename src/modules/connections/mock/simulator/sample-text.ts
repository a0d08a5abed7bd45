import { createHash } from 'node:crypto';

const WORDS =
  'amber harbor meadow signal lantern copper willow summit river cobalt maple orchard beacon quartz cedar comet delta ember falcon garnet'.split(
    ' ',
  );
const FIRST_NAMES = ['Alice', 'Bruno', 'Chen', 'Dalia', 'Emil', 'Farah', 'Goran', 'Hana', 'Ivan', 'Jun'];
const LAST_NAMES = ['Adler', 'Brandt', 'Castro', 'Dubois', 'Eriksen', 'Fischer', 'Garcia', 'Horvat', 'Ito', 'Jansen'];
const CITIES = ['Lisbon', 'Oslo', 'Kyoto', 'Toronto', 'Nairobi', 'Vienna'];
const COUNTRIES = ['Portugal', 'Norway', 'Japan', 'Canada', 'Kenya', 'Austria'];
const CURRENCIES = ['EUR', 'USD', 'JPY', 'CHF'];

/** Dates lie in the year from here. */
const DAY_ZERO = Date.UTC(2026, 0, 1);
const YEAR_SECONDS = 365 * 24 * 60 * 60;

/** Pseudo-random numbers, equal for equal seeds on every machine. Not for secrets. */
export class SeededRandom {
  private state: number;

  constructor(seed: string) {
    this.state = createHash('sha256').update(seed).digest().readInt32LE();
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

/** A moment of 2026, to the second. */
function dateOf(random: SeededRandom): string {
  return new Date(DAY_ZERO + random.between(0, YEAR_SECONDS - 1) * 1_000).toISOString();
}

export function word(random: SeededRandom): string {
  return random.pick(WORDS);
}

export function words(random: SeededRandom, count: number): string {
  const text = Array.from({ length: count }, () => word(random)).join(' ');
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Texts by JSON Schema format. Hosts are reserved ones that never exist (RFC 2606). */
const byFormat: Record<string, (random: SeededRandom) => string> = {
  'date-time': dateOf,
  'iso-date-time': dateOf,
  date: (random) => dateOf(random).slice(0, 10),
  time: (random) => `${dateOf(random).slice(11, 19)}Z`,
  'iso-time': (random) => `${dateOf(random).slice(11, 19)}Z`,
  duration: (random) => `PT${random.between(1, 59)}M`,
  email: (random) => `${word(random)}@example.com`,
  hostname: (random) => `${word(random)}.example.com`,
  ipv4: (random) => `192.0.2.${random.between(1, 254)}`,
  ipv6: (random) => `2001:db8::${random.hex(4).replace(/^0/, '1')}`,
  uri: (random) => `https://example.com/${word(random)}`,
  url: (random) => `https://example.com/${word(random)}`,
  'uri-reference': (random) => `/${word(random)}`,
  'uri-template': (random) => `https://example.com/${word(random)}/{id}`,
  uuid: (random) => random.uuid(),
  'json-pointer': (random) => `/${word(random)}`,
  'relative-json-pointer': () => '0',
  regex: (random) => `^${word(random)}$`,
  byte: (random) => Buffer.from(word(random)).toString('base64'),
};

/** Texts by the name of a property in snake case; the first match counts. */
const byName: [RegExp, (random: SeededRandom) => string][] = [
  [/uuid|guid/, (random) => random.uuid()],
  [/e?mail$/, (random) => `${word(random)}@example.com`],
  [/(url|uri|link|href|website|homepage)$/, (random) => `https://example.com/${word(random)}`],
  [/(date|time|timestamp|_at|_on)$/, dateOf],
  [/(sha|hash|digest|commit|checksum)$/, (random) => random.hex(40)],
  [/(^|_)id$/, (random) => random.hex(8)],
  [/token|secret|password|api_key/, (random) => `simulated-${random.hex(8)}`],
  [/first_name/, (random) => random.pick(FIRST_NAMES)],
  [/last_name|surname/, (random) => random.pick(LAST_NAMES)],
  [/user|login|author|owner|assignee|creator|handle/, (random) => random.pick(FIRST_NAMES).toLowerCase()],
  [/city|location|place|town/, (random) => random.pick(CITIES)],
  [/country/, (random) => random.pick(COUNTRIES)],
  [/currency/, (random) => random.pick(CURRENCIES)],
  [/version/, (random) => `${random.between(0, 9)}.${random.between(0, 20)}.${random.between(0, 20)}`],
  [/path|file/, (random) => `/${word(random)}/${word(random)}.txt`],
  [/(state|status)$/, () => 'open'],
  [/title|subject|headline|summary/, (random) => words(random, 3)],
  [/description|body|text|content|message|comment|note|snippet/, (random) => `${words(random, 6)}.`],
  [/name|label|tag|slug|key|type|kind|category/, word],
];

/** A text of a format; null when the format is unknown. */
export function textOfFormat(format: string, random: SeededRandom): string | null {
  return Object.hasOwn(byFormat, format) ? byFormat[format](random) : null;
}

/** A text that suits a property of this name. */
export function textOfName(name: string, random: SeededRandom): string {
  const plain = snakeCase(name);
  const make = byName.find(([pattern]) => pattern.test(plain))?.[1];
  return make ? make(random) : words(random, 2);
}

/** `createPullRequest`, `create-pull_request` and `create.pull/request` become `create_pull_request`. */
function snakeCase(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1_$2')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^_|_$/g, '');
}

/** A name without case and separators: `issueNumber` and `issue_number` are equal. */
export function plainName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '');
}
