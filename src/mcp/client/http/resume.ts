import type { Cancellation } from '../../protocol/cancellation.js';
import { deadlineIn } from '../../protocol/deadline.js';
import { CallerLeftError, UpstreamError } from '../../protocol/mcp-errors.js';
import { STREAM_MS_MAX, type ExchangeAnswer, type ExchangeRequest } from './http-exchange.js';

/** Tries in a row that bring nothing new. A server that ends its streams early on purpose brings a new event id each time. */
const TRIES_MAX = 3;

/** When the server did not say how long to wait; and how long it may make us wait. */
const RETRY_MS = 1_000;
const RETRY_MS_MIN = 100;
const RETRY_MS_MAX = 60_000;

/**
 * Takes up the stream of a legacy answer where it broke, by GET with `Last-Event-ID`: the call still runs, so this is no
 * repeat. Gives the answer whose stream brought the message that was waited for; else the broken one, without it.
 *
 * @throws UpstreamFailure when the deadline passes or the caller leaves
 */
export async function resumed(
  send: (request: ExchangeRequest) => Promise<ExchangeAnswer>,
  request: ExchangeRequest,
  broken: ExchangeAnswer,
): Promise<ExchangeAnswer> {
  const { 'content-type': _, ...headers } = request.headers;
  const until = Date.now() + STREAM_MS_MAX;
  const left = deadlineIn(broken.resume?.leftMs ?? request.timeoutMs);
  const timeLeft = () => (request.extendWithEvents ? request.timeoutMs : left());
  let last = broken;
  for (let tries = 0; tries < TRIES_MAX && last.resume && Date.now() < until; tries += 1) {
    const { lastEventId, retryMs } = last.resume;
    const waitMs = Math.max(retryMs ?? RETRY_MS, RETRY_MS_MIN);
    await pause(Math.min(waitMs, RETRY_MS_MAX, timeLeft()), request.cancellation);
    const again: ExchangeRequest = {
      ...request,
      method: 'GET',
      body: undefined,
      timing: undefined,
      headers: { ...headers, accept: 'text/event-stream', 'last-event-id': lastEventId },
      timeoutMs: timeLeft(),
    };
    const answer = await send(again).catch((error: unknown) => {
      // A socket that fails is tried again; a deadline or a caller that left ends it.
      if (error instanceof UpstreamError) return null;
      throw error;
    });
    if (answer === null) continue;
    if (answer.status !== 200 || !answer.contentType.startsWith('text/event-stream')) break;
    if (answer.text !== null) return answer;
    if (answer.resume && answer.resume.lastEventId !== lastEventId) tries = -1;
    last = { ...answer, resume: answer.resume ?? last.resume };
  }
  return broken;
}

function pause(ms: number, cancellation?: Cancellation): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = () => {
      clearTimeout(timer);
      reject(new CallerLeftError());
    };
    const timer = setTimeout(() => {
      cancellation?.forget(leave);
      resolve();
    }, ms);
    cancellation?.notify(leave);
  });
}
