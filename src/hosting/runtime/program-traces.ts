import { growingLru } from '../../platform/limits/growing-lru.js';
import { uuidV7 } from '../../platform/database/uuid-v7.js';
import { ENDED_MAX, type ProgramRef, type RuntimeOutcome, type Trace } from '../hosting.types.js';
import type { ProgramOwners } from '../hosting.js';
import type { ProgramCalls } from './program-calls.js';

/** Limit of records per minute for output that belongs to no request, and of buffered ones of a start. */
const UNATTRIBUTED_PER_MINUTE = 60;

const START_METHOD = 'START';

/**
 * Passes the observations of one program to its owner.
 * Output without an invocation is assigned to the request that waits for the start, to the only one in flight, or after
 * a kill to the request that caused it. Otherwise it becomes a record with the method `START` and the path `/`, at most
 * 60 a minute.
 */
export class ProgramTraces {
  private readonly verdicts = growingLru<RuntimeOutcome>(ENDED_MAX);
  private attributedTo: string | null = null;
  private starting: Trace[] | null = [];
  private minute = 0;
  private unattributedInMinute = 0;
  dropped = 0;

  constructor(
    private readonly programs: ProgramOwners,
    private readonly ref: ProgramRef,
    /** Requests to which output without an id may belong; null for none. */
    private readonly calls: Pick<ProgramCalls, 'all'> | null,
  ) {}

  private inFlight(): string[] {
    return this.calls?.all.map(({ invocationId }) => invocationId) ?? [];
  }

  reportOutcome(trace: Omit<Trace, 'ref'>): void {
    if (trace.outcome) this.verdicts.set(trace.invocationId, trace.outcome);
    this.send({ ref: this.ref, ...trace });
  }

  attribute(invocationId: string | null): void {
    this.attributedTo = invocationId;
  }

  reportStart(): void {
    const pieces = this.starting ?? [];
    this.starting = null;
    const [first] = pieces;
    if (!first) return;
    const lines = pieces.flatMap((piece) => piece.lines);
    const exceptions = pieces.flatMap((piece) => piece.exceptions);
    const isTruncated = pieces.some((piece) => piece.isTruncated);
    this.reportUnattributed({ ...first, lines, exceptions, ...(isTruncated && { isTruncated }) }, this.inFlight()[0]);
  }

  receiveTrace(trace: Trace): void {
    if (trace.invocationId !== '') {
      const { outcome, ...rest } = trace;
      return this.send(outcome && !this.verdicts.has(trace.invocationId) ? trace : rest);
    }
    if (this.starting) {
      if (this.starting.length < UNATTRIBUTED_PER_MINUTE) this.starting.push(trace);
      else this.dropped += 1;
      return;
    }
    const inFlight = this.inFlight();
    this.reportUnattributed(trace, this.attributedTo ?? (inFlight.length === 1 ? inFlight[0] : undefined));
  }

  private reportUnattributed(trace: Trace, invocationId: string | undefined): void {
    if (invocationId !== undefined) {
      const { outcome: _outcome, ...rest } = trace;
      return this.send({ ...rest, invocationId });
    }
    const minute = Math.floor(Date.now() / 60_000);
    if (minute !== this.minute) this.unattributedInMinute = 0;
    this.minute = minute;
    this.unattributedInMinute += 1;
    if (this.unattributedInMinute > UNATTRIBUTED_PER_MINUTE) {
      this.dropped += 1;
      return;
    }
    const at = trace.lines[0]?.at ?? trace.exceptions[0]?.at ?? Date.now();
    const request = { at, method: START_METHOD, path: '/', status: trace.exceptions.length > 0 ? 500 : 200 };
    this.send({ ...trace, invocationId: uuidV7(at), request: { ...request, rpcMethod: null } });
  }

  private send(trace: Trace): void {
    try {
      this.programs.ownerOf(this.ref.kind).recordTrace(trace);
    } catch (error) {
      this.programs.log(this.ref, 'error', { msg: 'the trace of a hosted request could not be recorded', err: error });
    }
  }
}
