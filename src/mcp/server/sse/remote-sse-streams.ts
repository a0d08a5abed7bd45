import { deserializeError, type SerializedError } from '../../../platform/internal-http/error-codec.js';
import { isProcessGone, type InternalClient } from '../../../platform/internal-http/internal-client.js';
import type { CallObserver } from '../mcp-request.js';
import { McpSessionNotFoundError } from '../mcp-server.errors.js';
import type { StreamRef } from '../sessions/sealed-stream-ids.js';

/** Head of the request; its body is the message that the client posted. */
export interface SseStreamHead {
  name: string;
}

/** The process has accepted the message, then at most one failure of its call follows. */
export type SseStreamMessage = { type: 'taken' } | { type: 'failed'; error: SerializedError };

export const SSE_STREAMS_PATH = '/internal/sse-streams';

/** Timeout until the other process accepts a message. */
const TAKEN_MS = 10_000;

/**
 * Resolves when the message was handled in the other process.
 *
 * @param onTaken called when that process has accepted the message
 * @throws McpSessionNotFoundError when that process, or the stream, no longer exists
 */
export async function postToRemoteStream(
  client: InternalClient,
  { name, url }: StreamRef,
  body: string,
  onTaken: () => void,
  observer?: CallObserver,
): Promise<void> {
  if (url === null) throw new McpSessionNotFoundError();
  let isTaken = false;
  const call = { url, path: SSE_STREAMS_PATH, head: { name } satisfies SseStreamHead, body, answerTimeoutMs: TAKEN_MS };
  const { ended } = client.follow<SseStreamMessage>(call, (message) => {
    if (message.type === 'failed') return observer?.failed(deserializeError(message.error));
    isTaken = true;
    onTaken();
  });
  try {
    await ended;
  } catch (error) {
    if (isTaken) observer?.failed(error as Error);
    else throw isProcessGone(error) ? new McpSessionNotFoundError() : error;
  }
}
