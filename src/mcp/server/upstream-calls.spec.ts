import { describe, expect, it } from '@jest/globals';
import { Cancellation } from '../protocol/cancellation.js';
import { CancellableCalls } from './upstream-calls.js';

describe('running calls', () => {
  it('are cancelled by the id under which a caller runs one', () => {
    const calls = new CancellableCalls();
    const [mine, beside, theirs] = [new Cancellation(), new Cancellation(), new Cancellation()];
    calls.begin('me', '1', mine);
    calls.begin('me', '"1"', beside);
    calls.begin('them', '1', theirs);
    calls.cancel('me', '1');
    expect([mine.isCancelled, beside.isCancelled, theirs.isCancelled]).toEqual([true, false, false]);
  });

  it('are not cancelled while two have one id; the remaining one is when the other has ended', () => {
    const calls = new CancellableCalls();
    const [first, second] = [new Cancellation(), new Cancellation()];
    const end = calls.begin('me', '1', first);
    calls.begin('me', '1', second);
    calls.cancel('me', '1');
    expect([first.isCancelled, second.isCancelled]).toEqual([false, false]);
    end();
    calls.cancel('me', '1');
    expect([first.isCancelled, second.isCancelled]).toEqual([false, true]);
  });

  it('do not include a call that has ended', () => {
    const calls = new CancellableCalls();
    const call = new Cancellation();
    calls.begin('me', '1', call)();
    calls.cancel('me', '1');
    expect(call.isCancelled).toBe(false);
  });
});
