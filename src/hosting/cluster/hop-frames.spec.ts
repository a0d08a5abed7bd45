import { describe, expect, it } from '@jest/globals';
import * as errors from '../hosting.errors.js';
import { dataPrefix, END_FRAME, failureFrame, FrameReader, headFrame, type HopFrame } from './hop-frames.js';
import { fromWire, toWire } from './wired-failure.js';

function read(...chunks: Buffer[]): HopFrame[] {
  const frames: HopFrame[] = [];
  const reader = new FrameReader((frame) => frames.push(frame));
  for (const chunk of chunks) reader.push(chunk);
  return frames;
}

const head = { status: 201, headers: { 'content-type': 'text/plain', 'set-cookie': ['a=1', 'b=ü'] } };
const body = Buffer.from('two words é');
const whole = Buffer.concat([headFrame(head), dataPrefix(body.length), body, dataPrefix(0), END_FRAME]);

describe('an answer between processes', () => {
  it('is the same however it is cut', () => {
    for (let size = 1; size <= whole.length; size += 1) {
      const chunks = [];
      for (let at = 0; at < whole.length; at += size) chunks.push(whole.subarray(at, at + size));
      const frames = read(...chunks);
      expect(frames[0]).toEqual({ kind: 'head', head });
      expect(frames.at(-1)).toEqual({ kind: 'end' });
      const data = frames.flatMap((frame) => (frame.kind === 'data' ? [frame.data] : []));
      expect(Buffer.concat(data)).toEqual(body);
    }
  });

  it('hands data on before its frame is complete', () => {
    const frames = read(Buffer.concat([headFrame(head), dataPrefix(1_000_000), body]));
    expect(frames.at(-1)).toEqual({ kind: 'data', data: body });
  });

  it('is refused when it is something else', () => {
    expect(() => read(Buffer.from('HTTP/1.1 200 OK'))).toThrow(/no frame|too long/);
    expect(() => read(Buffer.from([0x68, 0xff, 0, 0, 0]))).toThrow(/too long/);
    expect(() => read(Buffer.from([0x7a, 0, 0, 0, 0]))).toThrow(/no frame/);
  });
});

describe('a failure between processes', () => {
  /** One of each class there is, so that a new one cannot be left out. */
  const samples = Object.entries(errors).flatMap<errors.HostedFailure>(([name, kind]) => {
    if (!(kind.prototype instanceof errors.HostedFailure)) return [];
    if (name === 'LimitExceededError') {
      const outcomes = ['exceededCpu', 'exceededMemory', 'exceededWall', 'exceededResponse'] as const;
      return outcomes.map((outcome) => new errors.LimitExceededError(outcome, `Too much: ${outcome}`));
    }
    // Those that take no second argument pass it over.
    type Kind = new (message: string, retryAfterSeconds: number) => errors.HostedFailure;
    return [new (kind as Kind)(`Says ${name} "é"`, 15)];
  });

  it.each(samples)('arrives as it was: $name $outcome', (failure) => {
    const [frame] = read(failureFrame(toWire(failure)));
    const arrived = frame?.kind === 'failure' ? fromWire(frame.failure) : null;
    expect(arrived?.constructor).toBe(failure.constructor);
    const { kind, code, message, outcome, mayHaveRun, retryAfterSeconds, name } = failure;
    expect(arrived).toMatchObject({ kind, code, message, outcome, mayHaveRun, name });
    expect((arrived as errors.HostedFailure).retryAfterSeconds).toBe(retryAfterSeconds);
  });

  it('of a broken answer keeps its code, and tells nothing else', () => {
    const broken = Object.assign(new Error('other side closed'), { code: 'UND_ERR_SOCKET', socket: { remotePort: 1 } });
    expect(toWire(broken)).toEqual({ is: 'broken', message: 'other side closed', code: 'UND_ERR_SOCKET' });
    expect(fromWire(toWire(broken))).toMatchObject({ message: 'other side closed', code: 'UND_ERR_SOCKET' });
  });

  it('arrives with as much of its words as a frame holds, whatever they are made of', () => {
    for (const character of ['a', '\u0000', '語', '😀', '\ud800']) {
      const [frame] = read(failureFrame(toWire(new errors.ProgramStartError(character.repeat(200_000)))));
      const arrived = frame?.kind === 'failure' ? fromWire(frame.failure) : null;
      expect(arrived).toBeInstanceOf(errors.ProgramStartError);
      expect(arrived?.message).toHaveLength(16_001);
    }
  });

  it('of a class this version does not know is one after which the code may have run', () => {
    expect(fromWire({ is: 'LaterError', message: 'x' })).toMatchObject({ mayHaveRun: true, message: 'x' });
  });
});
