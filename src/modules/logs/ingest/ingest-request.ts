import { timeOfUuidV7, uuidV7 } from '../../../platform/database/uuid-v7.js';
import { invocationOutcomes, type IngestedInvocation } from '../invocation.types.js';
import { AGE_MS_MAX, invocationId, isUsableId, isVersion7, timeProblem } from './ingest-limits.js';
import { ENTRIES_MAX } from './invocation-bounds.js';
import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import { parseTime } from '../../../platform/http/time-text.js';

type Members = Record<string, unknown>;

/**
 * Reads the members of one object of a body. Null counts as missing; unknown members are ignored. Each method throws an
 * InvalidInputError with the path of an invalid member, such as `invocations[3].response.status`.
 */
class IngestRecord {
  private constructor(
    private readonly members: Members,
    private readonly path: string,
  ) {}

  static from(value: unknown, path: string): IngestRecord {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw new InvalidInputError(`${path} must be an object`);
    }
    return new IngestRecord(value as Members, path);
  }

  static listOf(value: unknown, path: string, countMax: number): IngestRecord[] {
    if (!Array.isArray(value) || value.length > countMax) {
      throw new InvalidInputError(`${path} must be an array of at most ${countMax} objects`);
    }
    return value.map((item, index) => IngestRecord.from(item, `${path}[${index}]`));
  }

  text(name: string): string | null {
    const value = this.member(name);
    if (value !== null && typeof value !== 'string') this.refuse(name, 'must be a string');
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
    const word = words.find((allowedWord) => allowedWord === value);
    if (value !== null && word === undefined) this.refuse(name, `must be one of ${words.join(', ')}`);
    return word ?? null;
  }

  /** Returns a number, rounded to an integer. */
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

  /** Returns a nested object; an empty one if it is missing. */
  object(name: string): IngestRecord {
    return IngestRecord.from(this.member(name) ?? {}, `${this.path}.${name}`);
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

/**
 * Reads the invocations of a JSON body: an array or `{invocations}` of objects as `GET` returns them. All members are
 * optional: the default time is now, the default outcome follows from status and exceptions. A record with an id is
 * stored once, even if it is sent again.
 *
 * @throws InvalidInputError with the path of the invalid member
 */
export function readIngestRequest(serverId: string, body: unknown, now: Date): IngestedInvocation[] {
  const list = Array.isArray(body) ? body : (body as { invocations?: unknown } | null | undefined)?.invocations;
  return IngestRecord.listOf(list, 'invocations', ENTRIES_MAX).map((record) => toInvocation(serverId, record, now));
}

/**
 * Converts a record. The time in an id of version 7 is the default for a missing timestamp. Such an id is stored unchanged; others are
 * hashed.
 */
function toInvocation(serverId: string, record: IngestRecord, now: Date): IngestedInvocation {
  const sentId = record.uuid('id');
  const at = record.time('timestamp') ?? (sentId !== null && isVersion7(sentId) ? timeOfUuidV7(sentId) : now);
  const problem = timeProblem(at, now);
  if (problem !== null) record.refuse('timestamp', problem);
  let id = uuidV7(at.getTime());
  if (sentId !== null && isUsableId(sentId, at)) id = sentId;
  else if (sentId !== null) {
    if (record.text('timestamp') === null) {
      record.refuse('timestamp', 'is missing: only an id of version 7 tells when the request came');
    }
    id = invocationId(serverId, sentId, at);
  }
  const [request, response, duration] = [
    record.object('request'),
    record.object('response'),
    record.object('duration'),
  ];
  const exceptions = record
    .list('exceptions', ENTRIES_MAX)
    .map((item) => ({
      at: (item.time('timestamp') ?? at).getTime(),
      name: item.text('name') ?? 'Error',
      message: item.text('message') ?? '',
    }));
  const lines = record
    .list('logs', ENTRIES_MAX)
    .map((item) => ({
      at: (item.time('timestamp') ?? at).getTime(),
      level: item.text('level') ?? 'info',
      message: item.text('message') ?? item.refuse('message', 'is missing'),
    }));
  const status = response.number('status', 100, 599);
  return {
    id,
    at: at.getTime(),
    method: request.text('method') ?? 'POST',
    url: request.text('url') ?? '/',
    rpcMethod: record.text('rpcMethod'),
    toolName: record.text('tool'),
    status: status ?? (exceptions.length > 0 ? 500 : 200),
    outcome: response.oneOf('outcome', invocationOutcomes) ?? outcomeOf(status, exceptions.length > 0),
    cpuMs: duration.number('cpuMs', 0, AGE_MS_MAX) ?? 0,
    wallMs: duration.number('wallMs', 0, AGE_MS_MAX) ?? 0,
    lines,
    exceptions,
  };
}

function outcomeOf(status: number | null, hasThrown: boolean): 'ok' | 'exception' | 'unknown' {
  if (hasThrown || (status ?? 0) >= 500) return 'exception';
  return status === null ? 'unknown' : 'ok';
}
