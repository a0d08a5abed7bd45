import { describe, expect, it } from '@jest/globals';
import type { ProgramRef, Trace, TraceLine } from '../hosting.types.js';
import { InFlight } from './in-flight-requests.js';
import { ProgramLog } from './program-log.js';
import type { TailItem } from './trace-sink.js';

const ref: ProgramRef = { kind: 'release', id: 'r', ownerId: 'o', engine: 'worker', isStateful: false };
const ONE = '0190b3a0-0000-7000-8000-000000000001';
const OTHER = '0190b3a0-0000-7000-8000-000000000002';

function setUp(logBytes = 1_024) {
  const traces: Trace[] = [];
  const inFlight = new InFlight();
  return { traces, inFlight, log: new ProgramLog(ref, inFlight, logBytes, (trace) => traces.push(trace)) };
}

const printed = (message: string, at = 1_000): TraceLine => ({ at, level: 'log', message });
const item = (id: string, ...messages: string[]): TailItem => ({
  id,
  hasThrown: false,
  isTruncated: false,
  lines: messages.map((message) => [1_000, 'log', message]),
  exceptions: [],
});

describe('the log of a program', () => {
  it('records a line once, whichever of its two sources is first', () => {
    const { traces, inFlight, log } = setUp();
    inFlight.begin(ONE);
    log.print(printed('early'));
    log.report([item(ONE, 'early', 'late')]);
    log.print(printed('late', 1_003));
    log.close();
    expect(traces.map(({ lines }) => lines.map(({ message }) => message))).toEqual([['early', 'late']]);
  });

  it('assigns the output of a crash to the only request in flight, and to none of several', () => {
    const alone = setUp();
    alone.inFlight.begin(ONE);
    alone.log.print(printed('x'));
    alone.inFlight.break(ONE);
    alone.inFlight.finish(ONE);
    alone.log.close();
    expect(alone.traces).toMatchObject([{ invocationId: ONE, lines: [{ message: 'x' }] }]);
    const several = setUp();
    several.inFlight.begin(ONE);
    several.inFlight.begin(OTHER);
    several.log.print(printed('x'));
    several.log.close();
    expect(several.traces).toMatchObject([{ invocationId: '' }]);
  });

  it('ignores ids that no request of this program had', () => {
    const { traces, inFlight, log } = setUp();
    inFlight.begin(ONE);
    inFlight.finish(ONE);
    log.report([item(OTHER, 'a'), item('nonsense', 'b'), item(ONE, 'c')]);
    expect(traces.map(({ invocationId }) => invocationId)).toEqual(['', '', ONE]);
  });

  it('limits the bytes of a request over all its records, and states once that there were more', () => {
    const { traces, inFlight, log } = setUp(42);
    inFlight.begin(ONE);
    log.report([item(ONE, '12345'), item(ONE, '123456', 'x'), item(ONE, 'y')]);
    expect(traces.map(({ lines, isTruncated }) => [lines.map(({ message }) => message), isTruncated])).toEqual([
      [['12345'], undefined],
      [['Lines were left out: one request may log 0 KB.'], true],
      [[], true],
    ]);
  });
});
