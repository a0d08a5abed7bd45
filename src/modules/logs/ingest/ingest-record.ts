import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import { parseTime } from '../../../platform/http/time-text.js';

type Members = Record<string, unknown>;

/**
 * Reads the members of one object of a body. Null counts as missing; unknown members are ignored. Each method throws an
 * InvalidInputError with the path of an invalid member, such as `invocations[3].response.status`.
 */
export class IngestRecord {
  private constructor(
    private readonly members: Members,
    private readonly path: string,
  ) {}

  static of(value: unknown, path: string): IngestRecord {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw new InvalidInputError(`${path} must be an object`);
    }
    return new IngestRecord(value as Members, path);
  }

  /** Reads an array of objects. */
  static listOf(value: unknown, path: string, countMax: number): IngestRecord[] {
    if (!Array.isArray(value) || value.length > countMax) {
      throw new InvalidInputError(`${path} must be an array of at most ${countMax} objects`);
    }
    return value.map((one, index) => IngestRecord.of(one, `${path}[${index}]`));
  }

  text(name: string): string | null {
    const value = this.member(name);
    if (value !== null && typeof value !== 'string') this.refuse(name, 'must be a text');
    return value;
  }

  uuid(name: string): string | null {
    const value = this.text(name);
    if (value !== null && !/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(value)) {
      this.refuse(name, 'must be a UUID');
    }
    return value?.toLowerCase() ?? null;
  }

  oneOf<T extends string>(name: string, words: readonly T[]): T | null {
    const value = this.text(name);
    const word = words.find((one) => one === value);
    if (value !== null && word === undefined) this.refuse(name, `must be one of ${words.join(', ')}`);
    return word ?? null;
  }

  /** A number, rounded to an integer. */
  number(name: string, min: number, max: number): number | null {
    const value = this.member(name);
    if (value === null) return null;
    if (typeof value !== 'number' || !(value >= min && value <= max)) {
      this.refuse(name, `must be a number from ${min} to ${max}`);
    }
    return Math.round(value);
  }

  time(name: string): Date | null {
    const value = this.text(name);
    const time = value === null ? null : parseTime(value);
    if (value !== null && time === null) this.refuse(name, 'must be a time such as 2026-11-20T10:15:00Z');
    return time;
  }

  /** A nested object; an empty one if it is missing. */
  object(name: string): IngestRecord {
    return IngestRecord.of(this.member(name) ?? {}, `${this.path}.${name}`);
  }

  list(name: string, countMax: number): IngestRecord[] {
    return IngestRecord.listOf(this.member(name) ?? [], `${this.path}.${name}`, countMax);
  }

  /** @throws InvalidInputError always */
  refuse(name: string, fault: string): never {
    throw new InvalidInputError(`${this.path}.${name} ${fault}`);
  }

  private member(name: string): unknown {
    return Object.hasOwn(this.members, name) ? (this.members[name] ?? null) : null;
  }
}
