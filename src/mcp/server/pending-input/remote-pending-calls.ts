import { OutcomeUnknownError } from '../../../platform/internal-http/error-codec.js';
import {
  ProcessUnreachedError,
  RequestRefusedError,
  type InternalClient,
} from '../../../platform/internal-http/internal-client.js';
import type { Cancellation } from '../../protocol/cancellation.js';
import { CALL_MS_MAX } from '../../client/silence-timer.js';
import { CallerLeftError, UpstreamError } from '../../protocol/mcp-errors.js';
import { parseMessage, replyTo } from '../../protocol/messages.js';
import type { Era } from '../../protocol/protocol.js';
import type { InputRequest } from '../bridge/input.js';
import {
  type NotificationSink,
  type Round,
  lostCallError,
  StateRefusedError,
  type RoundRequest,
} from './pending-input-call.js';

/** Head of a request to the process that holds a call. The body contains the client's responses. */
export type PendingCallHead = Omit<RoundRequest, 'answers'> & Pick<NotificationSink, 'token'>;

export type PendingCallMessage =
  | { type: 'event'; text: string }
  | { type: 'requests'; requests: InputRequest[] }
  | { type: 'reply'; text: string; era: Era };

export const PENDING_CALLS_PATH = '/internal/pending-calls';

/** Time beyond {@link CALL_MS_MAX}, the limit of an upstream call, for the return trip. */
const GRACE_MS = 2_000;

/**
 * @param url address of the process that holds the call; null when it has none
 * @throws StateRefusedError when that process, or the call, no longer exists; UpstreamFailure
 */
export async function remoteRound(
  client: InternalClient,
  url: string | null,
  { answers, ...incoming }: RoundRequest,
  target: NotificationSink,
  disconnected: Cancellation,
): Promise<Round> {
  if (url === null) {
    const message =
      'Another process of this service holds the call and does not say where it is reached: set ADVERTISE_URL for it.';
    throw new StateRefusedError(message, true);
  }
  const head: PendingCallHead = { ...incoming, token: target.token };
  let last: Exclude<PendingCallMessage, { type: 'event' }> | null = null;
  const stream = client.follow<PendingCallMessage>(
    { url, path: PENDING_CALLS_PATH, head, body: answers },
    (message) => {
      if (message.type === 'event') target.sink.event(message.text);
      else last = message;
    },
  );
  const onLeft = () => stream.abort(new CallerLeftError());
  disconnected.notify(onLeft);
  // The process that holds the call enforces the limit, unless it hangs.
  const timer = setTimeout(() => stream.abort(new OutcomeUnknownError()), CALL_MS_MAX + GRACE_MS).unref();
  try {
    await stream.ended;
  } catch (error) {
    if (disconnected.isCancelled) throw new CallerLeftError();
    if (error instanceof ProcessUnreachedError || error instanceof RequestRefusedError) throw lostCallError();
    throw error instanceof OutcomeUnknownError ? endedError() : error;
  } finally {
    clearTimeout(timer);
    disconnected.forget(onLeft);
  }
  const message = last as Exclude<PendingCallMessage, { type: 'event' }> | null;
  if (!message) throw endedError();
  if (message.type === 'requests') return { requests: message.requests };
  const answer = parseMessage(message.text);
  const reply = answer && replyTo(answer.id as number, message.text, answer, message.era);
  if (!reply)
    throw new UpstreamError('Another process sent a response that is not JSON-RPC.', { outcomeUnknown: true });
  return { reply };
}

function endedError(): UpstreamError {
  const message = 'The process of this service that held the call stopped before the response arrived.';
  return new UpstreamError(message, { outcomeUnknown: true }).ofCall();
}
