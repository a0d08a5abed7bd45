import { DomainError } from '../../../platform/errors/domain-error.js';
import { InternalCalls, wasSent } from '../../../platform/internal-http/internal-calls.js';
import type { InternalSignatures } from '../../../platform/internal-http/internal-signatures.js';
import type { Cancellation } from '../../protocol/cancellation.js';
import { STREAM_MS_MAX } from '../../client/http/http-exchange.js';
import { CallerLeftError, UpstreamError } from '../../protocol/mcp-errors.js';
import { parseMessage, replyTo } from '../../protocol/messages.js';
import type { Era } from '../../protocol/protocol.js';
import { fromWire, type WiredFailure } from '../../protocol/wired-failure.js';
import type { InputRequest } from '../bridge/input.js';
import type { ResponseTarget, Round } from './pending-input-call.js';
import { lost, StateRefusedError, type RoundRequest } from './request-state.js';

/** What one process asks of the one that holds a call; the answers of the client follow on the lines after it. */
export type PendingCallRequest = Omit<RoundRequest, 'answers'> & Pick<ResponseTarget, 'token'>;

/** One line of the answer. */
export type PendingCallLine =
  | { line: 'event'; text: string }
  | { line: 'asks'; asks: InputRequest[] }
  | { line: 'reply'; text: string; era: Era }
  | { line: 'refused'; message: string; isLost: boolean }
  | { line: 'failure'; failure: WiredFailure };

/** Where a process answers for the calls it holds. */
export const PENDING_CALLS_PATH = '/internal/parked-calls';

/** What an upstream may take for its call and the way back, beyond {@link STREAM_MS_MAX}. */
const GRACE_MS = 2_000;

/** Calls that wait in other processes. */
export class RemotePendingCalls {
  private readonly calls: InternalCalls;

  constructor(signatures: InternalSignatures) {
    this.calls = new InternalCalls(signatures);
  }

  /**
   * The next turn of a call.
   *
   * @param url where its process is reached
   * @throws StateRefusedError when that process, or the call, is gone; UpstreamFailure
   */
  async turn(
    url: string | null,
    { answers, ...asked }: RoundRequest,
    ears: ResponseTarget,
    left: Cancellation,
  ): Promise<Round> {
    if (url === null) {
      const why =
        'Another process of this service holds the call and does not say where it is reached: set ADVERTISE_URL for it.';
      throw new StateRefusedError(why, true);
    }
    const ask: PendingCallRequest = { ...asked, token: ears.token };
    let breakOff: () => void = () => undefined;
    const onLeft = () => breakOff();
    left.notify(onLeft);
    // The process that holds the call keeps the time; one that is frozen does not.
    const timer = setTimeout(() => breakOff(), STREAM_MS_MAX + GRACE_MS).unref();
    try {
      const posted = this.calls.post(url, PENDING_CALLS_PATH, ask, answers, (leave) => {
        breakOff = leave;
      });
      if (left.isCancelled) breakOff();
      const answer = await posted;
      const isHeld = answer.status === 200;
      let turn: Round | null = null;
      await answer.lines((text) => {
        const line = isHeld ? (JSON.parse(text) as PendingCallLine) : null;
        if (line?.line === 'event') ears.sink.event(line.text);
        else if (line) turn = turnIn(line);
      });
      if (turn !== null) return turn;
      throw isHeld ? ended() : lost();
    } catch (error) {
      if (left.isCancelled) throw new CallerLeftError();
      if (error instanceof DomainError || error instanceof StateRefusedError) throw error;
      throw wasSent(error) ? ended() : lost();
    } finally {
      clearTimeout(timer);
      left.forget(onLeft);
    }
  }
}

function turnIn(line: Exclude<PendingCallLine, { line: 'event' }>): Round {
  switch (line.line) {
    case 'asks':
      return { asks: line.asks };
    case 'reply': {
      const head = parseMessage(line.text);
      const reply = head && replyTo(head.id as number, line.text, head, line.era);
      if (!reply) throw new UpstreamError('Another process sent an answer that is no JSON-RPC.', undefined, true);
      return { reply };
    }
    case 'refused':
      throw new StateRefusedError(line.message, line.isLost);
    case 'failure':
      throw fromWire(line.failure);
  }
}

function ended(): UpstreamError {
  const message = 'The process of this service that held the call ended before the answer came.';
  return new UpstreamError(message, undefined, true).ofCall();
}
