import { describe, expect, it } from '@jest/globals';
import { deserializeError, OutcomeUnknownError, serializeError } from '../platform/internal-http/error-codec.js';
import { FrameReader, textFrame } from '../platform/internal-http/frames.js';
import { BrokenResponseError } from './cluster/internal-hosting.controller.js';
import * as errors from './hosting.errors.js';

/** Serializes and deserializes the error as between processes. */
function sent(error: Error): Error {
  const arrived: Error[] = [];
  const reader = new FrameReader((frame) => {
    if (frame.kind === 'failure') arrived.push(deserializeError(frame.value));
  });
  reader.push(textFrame('failure', JSON.stringify(serializeError(error))));
  expect(arrived).toHaveLength(1);
  return arrived[0];
}

describe('a failure between processes', () => {
  /** One sample of each error class, so that a new class is always covered. */
  const samples = Object.entries(errors).flatMap<errors.HostedFailure>(([name, kind]) => {
    if (!(kind.prototype instanceof errors.HostedFailure)) return [];
    if (name === 'LimitExceededError') {
      const outcomes = ['exceededCpu', 'exceededMemory', 'exceededWall', 'exceededResponse'] as const;
      return outcomes.map((outcome) => new errors.LimitExceededError(outcome, `Too much: ${outcome}`));
    }
    type Kind = new (message: string, retryAfterSeconds: number) => errors.HostedFailure;
    return [new (kind as Kind)(`Says ${name} "é"`, 15)];
  });

  it.each(samples)('arrives unchanged: $name $outcome', (failure) => {
    const arrived = sent(failure);
    expect(arrived.constructor).toBe(failure.constructor);
    const { kind, code, message, outcome, mayHaveRun, retryAfterSeconds, name } = failure;
    expect(arrived).toMatchObject({ kind, code, message, outcome, mayHaveRun, name });
    expect((arrived as errors.HostedFailure).retryAfterSeconds).toBe(retryAfterSeconds);
  });

  it('of a broken response keeps its code', () => {
    const arrived = sent(new BrokenResponseError('other side closed', 'UND_ERR_SOCKET'));
    expect(arrived).toMatchObject({ message: 'other side closed', code: 'UND_ERR_SOCKET' });
  });

  it('arrives with as much of its message as fits into a frame, whatever the characters', () => {
    for (const character of ['a', '\u0000', '語', '😀', '\ud800']) {
      const arrived = sent(new errors.ProgramStartError(character.repeat(200_000)));
      expect(arrived).toBeInstanceOf(errors.ProgramStartError);
      expect(arrived.message).toHaveLength(16_001);
    }
  });

  it('of an unknown class means that the outcome is unknown', () => {
    const later = deserializeError({ class: 'LaterError', message: 'x', fields: {} });
    expect(later).toBeInstanceOf(OutcomeUnknownError);
    expect(later.message).toBe('x');
  });

  it('of a class that is not sent to other processes contains nothing of it', () => {
    const bug = sent(new TypeError('nobody may read this'));
    expect(bug).toBeInstanceOf(OutcomeUnknownError);
    expect(bug.message).not.toContain('nobody');
  });
});
