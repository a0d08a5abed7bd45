import { Logger } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { uuidV7 } from '../../platform/database/uuid-v7.js';
import type { ProgramRef, RuntimeOutcome, Trace } from '../hosting.types.js';
import type { Programs } from '../programs.js';

/** Requests whose end is remembered, for what the program still tells of them. */
const ENDED_MAX = 1_000;

/** Records a program gets in a minute for lines that belong to no request. */
const STRAYS_PER_MINUTE = 60;

/** The method of a record that is no request: lines printed while the program was loaded, or between requests. */
const START_METHOD = 'START';

/** Lines and exceptions that wait for the end of a start that no request waits for. */
const START_PIECES_MAX = 100;

/**
 * Hands what is seen of one program to its owner.
 *
 * A piece without an invocation goes to the request that waits for the start, to the one in flight when it is alone, and
 * after an end by force to the request that is blamed for it. Otherwise it becomes a record of its own with the method
 * `START` and the path `/`, at most 60 a minute.
 */
export class ProgramTraces {
  private readonly logger = new Logger('hosting');
  /** What the runtime said of requests that it ended: the program's own view of those comes later, and counts less. */
  private readonly verdicts = new LRUCache<string, RuntimeOutcome>({ max: ENDED_MAX });
  private blamed: string | null = null;
  private starting: Trace[] | null = [];
  private minute = 0;
  private straysInMinute = 0;
  dropped = 0;

  constructor(
    private readonly programs: Programs,
    private readonly ref: ProgramRef,
    /** The requests a piece without an id may belong to, the oldest first. */
    private readonly inFlight: () => readonly string[],
  ) {}

  /** The runtime's own word at the end of a request. */
  ended(trace: Omit<Trace, 'ref'>): void {
    if (trace.outcome) this.verdicts.set(trace.invocationId, trace.outcome);
    this.send({ ref: this.ref, ...trace });
  }

  /** The program is ended because of this request, or of nobody in particular: what it still says belongs there. */
  blame(invocationId: string | null): void {
    this.blamed = invocationId;
  }

  /** The program runs, or will not: what it said until then goes out. */
  started(): void {
    const pieces = this.starting ?? [];
    this.starting = null;
    const [first] = pieces;
    if (!first) return;
    const lines = pieces.flatMap((piece) => piece.lines);
    const exceptions = pieces.flatMap((piece) => piece.exceptions);
    const isTruncated = pieces.some((piece) => piece.isTruncated);
    this.stray({ ...first, lines, exceptions, ...(isTruncated && { isTruncated }) }, this.inFlight()[0]);
  }

  /** What the program tells. */
  told(trace: Trace): void {
    if (trace.invocationId !== '') {
      const { outcome, ...rest } = trace;
      return this.send(outcome && !this.verdicts.has(trace.invocationId) ? trace : rest);
    }
    if (this.starting) {
      if (this.starting.length < START_PIECES_MAX) this.starting.push(trace);
      else this.dropped += 1;
      return;
    }
    const inFlight = this.inFlight();
    this.stray(trace, this.blamed ?? (inFlight.length === 1 ? inFlight[0] : undefined));
  }

  private stray(trace: Trace, invocationId: string | undefined): void {
    if (invocationId !== undefined) {
      const { outcome: _outcome, ...rest } = trace;
      return this.send({ ...rest, invocationId });
    }
    const minute = Math.floor(Date.now() / 60_000);
    if (minute !== this.minute) this.straysInMinute = 0;
    this.minute = minute;
    this.straysInMinute += 1;
    if (this.straysInMinute > STRAYS_PER_MINUTE) {
      this.dropped += 1;
      return;
    }
    const at = trace.lines[0]?.at ?? trace.exceptions[0]?.at ?? Date.now();
    const request = { at, method: START_METHOD, path: '/', status: trace.exceptions.length > 0 ? 500 : 200 };
    this.send({ ...trace, invocationId: uuidV7(at), request: { ...request, rpcMethod: null } });
  }

  private send(trace: Trace): void {
    try {
      this.programs.of(this.ref.kind).traced(trace);
    } catch (error) {
      this.logger.error({ msg: 'what was seen of a hosted request could not be handed on', err: error });
    }
  }
}
